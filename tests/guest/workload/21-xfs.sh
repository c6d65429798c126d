modprobe loop; mkdir -p /work/xfs
for options in '-m crc=1,reflink=1,rmapbt=1' '-m crc=0' ; do
truncate -s 320M /tmp/xfs
mkfs.xfs -f -q $options /tmp/xfs
mount -t xfs -o loop,usrquota,grpquota,prjquota,discard /tmp/xfs /work/xfs
/lab/bin/events files /work/xfs
( cd /work/xfs; mkdir many; i=0; while [ $i -lt 600 ]; do echo $i >many/a-name-that-is-long-$i; i=$((i+1)); done; /host/bin/cp --reflink=always other copy; dd if=/dev/zero of=copy bs=4k count=10 conv=notrunc; rm -r many )
/host/bin/cp --reflink=always /work/xfs/other /work/xfs/third
sync; chown 7:7 /work/xfs/other
/host/usr/bin/setfattr -n user.long -v $(head -c 3000 /dev/zero | tr '\0' x) /work/xfs/other
xfs_io -c 'fsmap' -c 'bmap -v' -c 'bulkstat' -c 'inumbers' /work/xfs/other
xfs_io -x -c 'scrub probe' -c 'scrub sb 0' -c 'scrub agf 0' -c 'scrub agi 0' -c 'scrub bnobt 0' -c 'scrub inobt 0' -c 'scrub rmapbt 0' -c 'scrub refcountbt 0' -c 'scrub inode' -c 'scrub bmapbtd' -c 'scrub directory' -c 'scrub fscounters' -c 'repair agf 0' -c 'repair agi 0' -c 'fsync' -c 'freeze' -c 'thaw' -c 'shutdown' /work/xfs
umount /work/xfs
mount -t xfs -o loop /tmp/xfs /work/xfs && umount /work/xfs
rm /tmp/xfs
done
