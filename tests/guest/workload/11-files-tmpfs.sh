mkdir -p /mnt/lab/tmpfs; mount -t tmpfs none /mnt/lab/tmpfs
/lab/bin/events files /mnt/lab/tmpfs
umount /mnt/lab/tmpfs
