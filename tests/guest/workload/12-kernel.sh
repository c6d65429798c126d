modprobe msr; /lab/bin/events counters
echo hello >/sys/kernel/tracing/trace_marker
printf '\1\0\0\0abcdef' >/sys/kernel/tracing/trace_marker_raw
echo 'p:one do_sys_openat2 file=+0(%si):ustring flags=%dx' >/sys/kernel/tracing/kprobe_events
echo 'r:two do_sys_openat2 result=$retval' >>/sys/kernel/tracing/kprobe_events
echo 1 >/sys/kernel/tracing/events/kprobes/enable
cat /etc/hosts
echo 0 >/sys/kernel/tracing/events/kprobes/enable
echo >/sys/kernel/tracing/kprobe_events
modprobe dummy; ip link add d0 type dummy; ip link set d0 up; ip addr add 10.9.8.1/24 dev d0; ping -c 1 -W 1 10.9.8.7
ip link del d0; rmmod dummy
echo 0 >/sys/devices/system/cpu/cpu1/online; sleep 0.2; echo 1 >/sys/devices/system/cpu/cpu1/online



mkdir -p /sys/fs/cgroup/a/b /sys/fs/cgroup/c
echo '+memory +io +pids +cpu' >/sys/fs/cgroup/cgroup.subtree_control
echo $$ >/sys/fs/cgroup/a/b/cgroup.procs
echo 1 >/sys/fs/cgroup/c/cgroup.freeze; echo 0 >/sys/fs/cgroup/c/cgroup.freeze
mv /sys/fs/cgroup/c /sys/fs/cgroup/e
echo $$ >/sys/fs/cgroup/cgroup.procs
echo threaded >/sys/fs/cgroup/e/cgroup.type
rmdir /sys/fs/cgroup/a/b /sys/fs/cgroup/a /sys/fs/cgroup/e
mkdir /mnt/lab/cg1; mount -t cgroup -o freezer none /mnt/lab/cg1; mkdir /mnt/lab/cg1/x; rmdir /mnt/lab/cg1/x; umount /mnt/lab/cg1
echo 1 >/proc/sys/vm/compact_memory
echo 3 >/proc/sys/vm/drop_caches
echo always >/sys/kernel/mm/transparent_hugepage/enabled
echo 20 >/proc/sys/vm/nr_hugepages; /lab/bin/events memory; echo 0 >/proc/sys/vm/nr_hugepages
echo t >/proc/sysrq-trigger
hwclock -r -f /dev/rtc0; cat /sys/class/rtc/rtc0/wakealarm; echo +100 >/sys/class/rtc/rtc0/wakealarm; echo 0 >/sys/class/rtc/rtc0/wakealarm
nice -n 5 true; taskset 1 true
echo 1 >/proc/self/oom_score_adj
