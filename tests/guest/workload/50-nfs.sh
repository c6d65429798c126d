mkdir -p /mnt/lab/export /mnt/lab/nfs /var/lib/nfs /run/rpcbind /var/run /etc; modprobe nfsd; modprobe nfs; modprobe nfsv3; modprobe nfsv4; modprobe loop
dd if=/dev/zero of=/tmp/nfsdisk bs=1M count=32; mkfs.ext4 -q /tmp/nfsdisk; mount -o loop /tmp/nfsdisk /mnt/lab/export
mount -t nfsd nfsd /proc/fs/nfsd; mkdir -p /var/lib/nfs/v4recovery /var/lib/nfs/rpc_pipefs /var/lib/nfs/sm; mount -t rpc_pipefs none /var/lib/nfs/rpc_pipefs
touch /var/lib/nfs/etab /var/lib/nfs/rmtab
rpcbind -w; sleep 0.3
echo '/mnt/lab/export 127.0.0.1(rw,no_root_squash,insecure,fsid=0,no_subtree_check)' >/etc/exports
rpc.mountd; exportfs -ar; rpc.nfsd 2; sleep 0.5
for v in 3 4.0 4.1 4.2; do
timeout 20 mount -t nfs -o addr=127.0.0.1,vers=$v,nolock,proto=tcp,clientaddr=127.0.0.1,mountaddr=127.0.0.1 127.0.0.1:/$([ $v = 3 ] && echo work/export) /mnt/lab/nfs || timeout 20 mount.nfs 127.0.0.1:/$([ $v = 3 ] && echo work/export) /mnt/lab/nfs -o vers=$v,nolock
/lab/bin/events files /mnt/lab/nfs; ls -lR /mnt/lab/nfs >/dev/null; rm -rf /mnt/lab/nfs/*; df /mnt/lab/nfs; umount /mnt/lab/nfs
done
rpc.nfsd 0; exportfs -au; umount /mnt/lab/export; killall rpc.mountd rpcbind
