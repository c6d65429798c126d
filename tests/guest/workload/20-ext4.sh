dd if=/dev/zero of=/tmp/ext4 bs=1M count=64
mkfs.ext4 -q -O quota,encrypt,inline_data,bigalloc -b 4096 /tmp/ext4 || mkfs.ext4 -q /tmp/ext4
modprobe loop; mkdir -p /work/ext4
mount -t ext4 -o loop,discard /tmp/ext4 /work/ext4
/lab/bin/events files /work/ext4
cp -r /host/usr/share/doc/bash /work/ext4/ ; sync; rm -r /work/ext4/bash
mount -o remount,data_err=abort /work/ext4
umount /work/ext4
mkfs.ext4 -q -F -O ^bigalloc,fast_commit /tmp/ext4
mount -t ext4 -o loop,nodelalloc,data=journal /tmp/ext4 /work/ext4; /lab/bin/events files /work/ext4; umount /work/ext4
mount -t ext4 -o loop /tmp/ext4 /work/ext4; /lab/bin/events files /work/ext4
cp /host/bin/bash /work/ext4; resize2fs /dev/loop0; ( cd /work/ext4; mkdir many; i=0; while [ $i -lt 400 ]; do echo $i >many/$i; i=$((i+1)); done ); sync
echo 3 >/proc/sys/vm/drop_caches; ls -lR /work/ext4 >/dev/null; cat /work/ext4/bash >/dev/null; rm -r /work/ext4/many; umount /work/ext4
mkfs.ext4 -q -F -O ^extents,^64bit,^metadata_csum /tmp/ext4
mount -t ext4 -o loop /tmp/ext4 /work/ext4; /lab/bin/events files /work/ext4; umount /work/ext4
rm /tmp/ext4
