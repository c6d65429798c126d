dd if=/dev/zero of=/tmp/ext4 bs=1M count=64
mkfs.ext4 -q -O quota,encrypt,inline_data,bigalloc -b 4096 /tmp/ext4 || mkfs.ext4 -q /tmp/ext4
modprobe loop; mkdir -p /mnt/lab/ext4
mount -t ext4 -o loop,discard /tmp/ext4 /mnt/lab/ext4
/lab/bin/events files /mnt/lab/ext4
cp -r /host/usr/share/doc/bash /mnt/lab/ext4/ ; sync; rm -r /mnt/lab/ext4/bash
mount -o remount,data_err=abort /mnt/lab/ext4
umount /mnt/lab/ext4
mkfs.ext4 -q -F -O ^bigalloc,fast_commit /tmp/ext4
mount -t ext4 -o loop,nodelalloc,data=journal /tmp/ext4 /mnt/lab/ext4; /lab/bin/events files /mnt/lab/ext4; umount /mnt/lab/ext4
mount -t ext4 -o loop /tmp/ext4 /mnt/lab/ext4; /lab/bin/events files /mnt/lab/ext4
cp /host/bin/bash /mnt/lab/ext4; resize2fs /dev/loop0; ( cd /mnt/lab/ext4; mkdir many; i=0; while [ $i -lt 400 ]; do echo $i >many/$i; i=$((i+1)); done ); sync
echo 3 >/proc/sys/vm/drop_caches; ls -lR /mnt/lab/ext4 >/dev/null; cat /mnt/lab/ext4/bash >/dev/null; rm -r /mnt/lab/ext4/many; umount /mnt/lab/ext4
mkfs.ext4 -q -F -O ^extents,^64bit,^metadata_csum /tmp/ext4
mount -t ext4 -o loop /tmp/ext4 /mnt/lab/ext4; /lab/bin/events files /mnt/lab/ext4; umount /mnt/lab/ext4
rm /tmp/ext4
