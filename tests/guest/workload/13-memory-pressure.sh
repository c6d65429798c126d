modprobe zram; echo 128M >/sys/block/zram0/disksize; mkswap /dev/zram0; swapon /dev/zram0
mkdir -p /sys/fs/cgroup/small; echo '+memory +io +pids +cpu' >/sys/fs/cgroup/cgroup.subtree_control
echo 40M >/sys/fs/cgroup/small/memory.max
cat >/tmp/pressure <<'S'
echo $$ >/sys/fs/cgroup/small/cgroup.procs
dd if=/dev/zero of=/tmp/large bs=1M count=60
cat /tmp/large >/dev/null
rm /tmp/large
S
sh /tmp/pressure
echo 30M >/sys/fs/cgroup/small/memory.high
/lab/bin/events memory & sleep 0.1
echo max >/sys/fs/cgroup/small/memory.high
cat >/tmp/pressure <<'S'
echo $$ >/sys/fs/cgroup/small/cgroup.procs
echo 500 >/proc/self/oom_score_adj
echo 0 >/sys/fs/cgroup/small/memory.swap.max
head -c 60m /dev/zero | timeout -s KILL 10 tail
S
sh /tmp/pressure
wait
echo 5M >/sys/fs/cgroup/small/memory.reclaim
swapoff /dev/zram0
rmdir /sys/fs/cgroup/small

rmmod zram
