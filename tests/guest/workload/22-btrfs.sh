modprobe btrfs; mkdir -p /mnt/lab/btrfs
truncate -s 200M /tmp/btrfs; truncate -s 200M /tmp/btrfs2
mkfs.btrfs -q -f /tmp/btrfs
mount -t btrfs -o loop,compress=zstd,discard,space_cache=v2,autodefrag /tmp/btrfs /mnt/lab/btrfs
/lab/bin/events files /mnt/lab/btrfs

btrfs quota enable /mnt/lab/btrfs
btrfs subvolume create /mnt/lab/btrfs/one
cp /host/bin/bash /mnt/lab/btrfs/one; sync
btrfs subvolume snapshot /mnt/lab/btrfs/one /mnt/lab/btrfs/two
echo x >>/mnt/lab/btrfs/two/bash; sync
btrfs subvolume delete -c /mnt/lab/btrfs/two
btrfs filesystem defragment -r /mnt/lab/btrfs
btrfs qgroup limit 50M /mnt/lab/btrfs/one; btrfs qgroup create 1/0 /mnt/lab/btrfs
losetup -f /tmp/btrfs2; d=$(losetup -j /tmp/btrfs2 | cut -d: -f1); [ -n "$d" ] || d=/dev/loop1
btrfs device add -f $d /mnt/lab/btrfs; btrfs balance start --full-balance /mnt/lab/btrfs; btrfs device remove $d /mnt/lab/btrfs
btrfs scrub start -B /mnt/lab/btrfs
i=0; while [ $i -lt 300 ]; do head -c 5000 /dev/urandom >/mnt/lab/btrfs/f$i; i=$((i+1)); done; sync; rm /mnt/lab/btrfs/f*; sync
btrfs quota rescan -w /mnt/lab/btrfs
umount /mnt/lab/btrfs; losetup -d $d; rm /tmp/btrfs*
