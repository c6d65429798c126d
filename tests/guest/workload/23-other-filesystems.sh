mkdir -p /mnt/lab/fs
modprobe f2fs; truncate -s 200M /tmp/f2fs; mkfs.f2fs -q -O extra_attr,compression,inode_checksum /tmp/f2fs || mkfs.f2fs /tmp/f2fs
mount -t f2fs -o loop,discard,background_gc=sync /tmp/f2fs /mnt/lab/fs && { /lab/bin/events files /mnt/lab/fs; cp /host/bin/bash /mnt/lab/fs; sync; i=0; while [ $i -lt 300 ]; do head -c 9000 /dev/urandom >/mnt/lab/fs/f$i; i=$((i+1)); done; sync; rm /mnt/lab/fs/f*1; sync; echo 3 >/proc/sys/vm/drop_caches; cat /mnt/lab/fs/bash >/dev/null; sleep 1; umount /mnt/lab/fs; }
rm -f /tmp/f2fs
truncate -s 300M /tmp/gfs2; mkfs.gfs2 -O -p lock_nolock -j 1 -J 32 /tmp/gfs2
mount -t gfs2 -o loop,lockproto=lock_nolock,quota=on /tmp/gfs2 /mnt/lab/fs && { /lab/bin/events files /mnt/lab/fs; umount /mnt/lab/fs; }
rm -f /tmp/gfs2
truncate -s 200M /tmp/nilfs; mkfs.nilfs2 /tmp/nilfs; modprobe nilfs2
mount -t nilfs2 -o loop,nogc /tmp/nilfs /mnt/lab/fs && { /lab/bin/events files /mnt/lab/fs; umount /mnt/lab/fs; }
rm -f /tmp/nilfs
truncate -s 300M /tmp/ocfs2; modprobe ocfs2; modprobe ocfs2_stackglue; mkfs.ocfs2 -M local -N 1 -F --fs-feature-level=max-features /tmp/ocfs2 </dev/null
mount -t ocfs2 -o loop,heartbeat=none /tmp/ocfs2 /mnt/lab/fs && { /lab/bin/events files /mnt/lab/fs; ( cd /mnt/lab/fs; mkdir many; i=0; while [ $i -lt 300 ]; do echo $i >many/a-name-that-is-long-$i; i=$((i+1)); done; rm -r many; cp --reflink=always other copy; ); sync; umount /mnt/lab/fs; }
rm -f /tmp/ocfs2
mkdir -p /tmp/tree; cp /host/bin/bash /tmp/tree; echo x >/tmp/tree/x; mkdir /tmp/tree/d; cp /host/bin/ls /tmp/tree/d
mkfs.erofs -zlz4 /tmp/erofs /tmp/tree || mkfs.erofs /tmp/erofs /tmp/tree; modprobe erofs
mount -t erofs -o loop /tmp/erofs /mnt/lab/fs && { cat /mnt/lab/fs/bash >/dev/null; ls -lR /mnt/lab/fs; cat /mnt/lab/fs/d/ls /mnt/lab/fs/x >/dev/null; umount /mnt/lab/fs; }
truncate -s 64M /tmp/jfs; mkfs.vfat /tmp/jfs; modprobe vfat; mount -t vfat -o loop /tmp/jfs /mnt/lab/fs && { /lab/bin/events files /mnt/lab/fs; umount /mnt/lab/fs; }
modprobe null_blk nr_devices=0; mkdir /sys/kernel/config/nullb/z; cd /sys/kernel/config/nullb/z; echo 1 >zoned; echo 4 >zone_size; echo 1 >memory_backed; echo 128 >size; echo 4096 >blocksize; echo 1 >power; cd /
modprobe zonefs; sleep 0.3; n=/dev/nullb0; [ -b $n ] && cat /sys/block/nullb0/queue/zoned && mkzonefs -f $n; mount -t zonefs $n /mnt/lab/fs && { ls -lR /mnt/lab/fs; dd if=/dev/zero of=/mnt/lab/fs/seq/0 bs=4k count=2 oflag=direct,append conv=notrunc; /host/bin/truncate -s 0 /mnt/lab/fs/seq/0; umount /mnt/lab/fs; }
mkfs.f2fs -m -f $n && mount -t f2fs $n /mnt/lab/fs && umount /mnt/lab/fs
echo 0 >/sys/kernel/config/nullb/z/power; rmdir /sys/kernel/config/nullb/z
