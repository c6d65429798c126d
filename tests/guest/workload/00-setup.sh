# What later parts stand on: programs of the machine outside, found under /host, and loaded modules.
ln -sf /host/lib64 /lib64
ln -sf /host/lib/x86_64-linux-gnu /lib/x86_64-linux-gnu
ln -sfn /host/etc/ssl /etc/ssl
mkdir -p /etc /var/lib/nfs /usr/lib /var/run
ln -sfn /host/usr/lib/x86_64-linux-gnu /usr/lib/x86_64-linux-gnu
echo 'root:x:0:0::/root:/bin/sh' >/etc/passwd
echo 'root:x:0:' >/etc/group
cp /host/etc/netconfig /host/etc/protocols /host/etc/services /host/etc/rpc $(ls /tools/etc/netconfig) /etc/ 2>/dev/null
echo '127.0.0.1 localhost' >/etc/hosts
echo 'hosts: files' >/etc/nsswitch.conf
hostname guest
mkdir -p /mnt/lab /sys/fs/cgroup
mount -t cgroup2 cgroup /sys/fs/cgroup
mount -t configfs config /sys/kernel/config 2>/dev/null || { modprobe configfs; mount -t configfs config /sys/kernel/config; }
ln -sf /proc/mounts /etc/mtab
mkdir -p /etc/target
