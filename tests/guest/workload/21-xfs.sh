modprobe loop; mkdir -p /mnt/lab/xfs
for options in '-m crc=1,reflink=1,rmapbt=1' '-m crc=0' ; do
truncate -s 320M /tmp/xfs
mkfs.xfs -f -q $options /tmp/xfs
mount -t xfs -o loop,usrquota,grpquota,prjquota,discard /tmp/xfs /mnt/lab/xfs
/lab/bin/events files /mnt/lab/xfs
( cd /mnt/lab/xfs; mkdir many; i=0; while [ $i -lt 600 ]; do echo $i >many/a-name-that-is-long-$i; i=$((i+1)); done; /host/bin/cp --reflink=always other copy; dd if=/dev/zero of=copy bs=4k count=10 conv=notrunc; rm -r many )
/host/bin/cp --reflink=always /mnt/lab/xfs/other /mnt/lab/xfs/third
sync; chown 7:7 /mnt/lab/xfs/other
/host/usr/bin/setfattr -n user.long -v $(head -c 3000 /dev/zero | tr '\0' x) /mnt/lab/xfs/other
xfs_io -c 'fsmap' -c 'bmap -v' -c 'bulkstat' -c 'inumbers' /mnt/lab/xfs/other
xfs_io -x -c 'scrub probe' -c 'scrub sb 0' -c 'scrub agf 0' -c 'scrub agi 0' -c 'scrub bnobt 0' -c 'scrub inobt 0' -c 'scrub rmapbt 0' -c 'scrub refcountbt 0' -c 'scrub inode' -c 'scrub bmapbtd' -c 'scrub directory' -c 'scrub fscounters' -c 'repair agf 0' -c 'repair agi 0' -c 'fsync' -c 'freeze' -c 'thaw' -c 'shutdown' /mnt/lab/xfs
umount /mnt/lab/xfs
mount -t xfs -o loop /tmp/xfs /mnt/lab/xfs && umount /mnt/lab/xfs
rm /tmp/xfs
done
