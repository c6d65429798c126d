modprobe btrfs; mkdir -p /work/btrfs
truncate -s 200M /tmp/btrfs; truncate -s 200M /tmp/btrfs2
mkfs.btrfs -q -f /tmp/btrfs
mount -t btrfs -o loop,compress=zstd,discard,space_cache=v2,autodefrag /tmp/btrfs /work/btrfs
/lab/bin/events files /work/btrfs

btrfs quota enable /work/btrfs
btrfs subvolume create /work/btrfs/one
cp /host/bin/bash /work/btrfs/one; sync
btrfs subvolume snapshot /work/btrfs/one /work/btrfs/two
echo x >>/work/btrfs/two/bash; sync
btrfs subvolume delete -c /work/btrfs/two
btrfs filesystem defragment -r /work/btrfs
btrfs qgroup limit 50M /work/btrfs/one; btrfs qgroup create 1/0 /work/btrfs
losetup -f /tmp/btrfs2; d=$(losetup -j /tmp/btrfs2 | cut -d: -f1); [ -n "$d" ] || d=/dev/loop1
btrfs device add -f $d /work/btrfs; btrfs balance start --full-balance /work/btrfs; btrfs device remove $d /work/btrfs
btrfs scrub start -B /work/btrfs
i=0; while [ $i -lt 300 ]; do head -c 5000 /dev/urandom >/work/btrfs/f$i; i=$((i+1)); done; sync; rm /work/btrfs/f*; sync
btrfs quota rescan -w /work/btrfs
umount /work/btrfs; losetup -d $d; rm /tmp/btrfs*
