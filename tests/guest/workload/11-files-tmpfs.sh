mkdir -p /work/tmpfs; mount -t tmpfs none /work/tmpfs
/lab/bin/events files /work/tmpfs
umount /work/tmpfs
