modprobe null_blk; modprobe kyber-iosched; modprobe bfq; sleep 0.3
mkdir -p /sys/kernel/config/nullb/b; cd /sys/kernel/config/nullb/b; echo 1 >memory_backed; echo 64 >size; echo 1 >discard; echo 1 >power; cd /
n=$(ls /sys/block; cat /sys/kernel/config/nullb/b/index; ls -d /sys/block/nullb* | tail -1); n=${n##*/}; m=/dev/$n
for s in kyber mq-deadline bfq none; do echo $s >/sys/block/$n/queue/scheduler; dd if=/dev/zero of=$m bs=256k count=40 oflag=direct; dd if=$m of=/dev/null bs=4k count=200; dd if=$m of=/dev/null bs=1M count=20 iflag=direct; done
echo 1 >/sys/block/$n/queue/wbt_lat_usec; dd if=/dev/zero of=$m bs=1M count=20; sync; blkdiscard -l 1048576 $m
d=$(cat /sys/block/$n/dev)
echo '+io' >/sys/fs/cgroup/cgroup.subtree_control; mkdir /sys/fs/cgroup/io
echo "$d enable=1 ctrl=user rpct=95.00 rlat=100 wpct=95.00 wlat=100 min=50.00 max=150.00" >/sys/fs/cgroup/io.cost.qos
echo "$d ctrl=user model=linear rbps=10000000 rseqiops=1000 rrandiops=1000 wbps=10000000 wseqiops=1000 wrandiops=1000" >/sys/fs/cgroup/io.cost.model
( echo 0 >/proc/self/cgroup; sh -c 'echo $$ >/sys/fs/cgroup/io/cgroup.procs; dd if=/dev/zero of='$m' bs=256k count=30 oflag=direct'; )
sleep 0.3; echo "$d enable=0" >/sys/fs/cgroup/io.cost.qos; rmdir /sys/fs/cgroup/io
modprobe brd rd_nr=4 rd_size=65536
modprobe raid1; modprobe raid456; modprobe raid0
mdadm --create /dev/md0 --run --level=1 --raid-devices=2 --bitmap=internal /dev/ram0 /dev/ram1 --force </dev/null; sleep 1; dd if=/dev/zero of=/dev/md0 bs=64k count=20 oflag=direct; mdadm --stop /dev/md0
mdadm --create /dev/md1 --run --level=5 --raid-devices=3 /dev/ram0 /dev/ram1 /dev/ram2 --force </dev/null; dd if=/dev/zero of=/dev/md1 bs=64k count=20 oflag=direct; mdadm --stop /dev/md1
modprobe dm-mod; modprobe dm-snapshot; modprobe dm-mirror; modprobe dm-crypt; modprobe dm-thin-pool
dmsetup create lin --table '0 65536 linear /dev/ram0 0'; dmsetup create str --table '0 65536 striped 2 8 /dev/ram1 0 /dev/ram2 0'; dd if=/dev/zero of=/dev/mapper/str bs=64k count=20 oflag=direct; dd if=/dev/zero of=/dev/mapper/lin bs=64k count=20; sync
dmsetup remove_all -f
modprobe bcache; dd if=/dev/zero of=/dev/ram0 bs=1M count=8; dd if=/dev/zero of=/dev/ram1 bs=1M count=8; make-bcache -B /dev/ram0 -C /dev/ram1; echo /dev/ram0 >/sys/fs/bcache/register; echo /dev/ram1 >/sys/fs/bcache/register; sleep 0.5
echo writeback >/sys/block/bcache0/bcache/cache_mode; echo 0 >/sys/block/bcache0/bcache/sequential_cutoff
dd if=/dev/zero of=/dev/bcache0 bs=64k count=60 oflag=direct; dd if=/dev/urandom of=/dev/bcache0 bs=4k count=300; sync; dd if=/dev/bcache0 of=/dev/null bs=4k count=1000; echo 1 >/sys/block/bcache0/bcache/cache/internal/trigger_gc; echo 0 >/sys/block/bcache0/bcache/writeback_percent; sleep 1
echo 1 >/sys/block/bcache0/bcache/stop; for c in /sys/fs/bcache/*-*; do echo 1 >$c/stop; done; sleep 0.3
modprobe sd_mod; modprobe sg; modprobe scsi_debug dev_size_mb=32 delay=0 lbpu=1 lbpws=1 num_tgts=2 ; sleep 1; s=/dev/sda; ls /sys/block; dd if=/dev/zero of=$s bs=64k count=40 oflag=direct; dd if=$s of=/dev/null bs=4k count=100; blkdiscard $s
echo 1 >/sys/bus/pseudo/drivers/scsi_debug/every_nth; echo 4 >/sys/bus/pseudo/drivers/scsi_debug/opts; timeout 20 dd if=$s of=/dev/null bs=4k count=2 iflag=direct; echo 0 >/sys/bus/pseudo/drivers/scsi_debug/opts; echo 0 >/sys/bus/pseudo/drivers/scsi_debug/every_nth
rmmod scsi_debug
modprobe nvme-loop; modprobe nvmet; c=/sys/kernel/config/nvmet; mkdir -p $c/subsystems/test; echo 1 >$c/subsystems/test/attr_allow_any_host; mkdir $c/subsystems/test/namespaces/1; echo -n /dev/ram3 >$c/subsystems/test/namespaces/1/device_path; echo 1 >$c/subsystems/test/namespaces/1/enable; mkdir $c/ports/1; echo loop >$c/ports/1/addr_trtype; ln -s $c/subsystems/test $c/ports/1/subsystems/test
echo 'transport=loop,nqn=test,hostnqn=nqn.2014-08.org.nvmexpress:uuid:6a1a5c1f-1111-2222-3333-444455556666,hostid=6a1a5c1f-1111-2222-3333-444455556666' >/dev/nvme-fabrics; sleep 0.5; dd if=/dev/zero of=/dev/nvme0n1 bs=64k count=20 oflag=direct; dd if=/dev/nvme0n1 of=/dev/null bs=4k count=20; blkdiscard /dev/nvme0n1; echo 1 >/sys/class/nvme/nvme0/delete_controller
modprobe target_core_mod; modprobe tcm_loop; modprobe target_core_file; modprobe target_core_iblock; t=/sys/kernel/config/target; mkdir -p $t/core/iblock_0/disk; echo udev_path=/dev/ram2 >$t/core/iblock_0/disk/control; echo 1 >$t/core/iblock_0/disk/enable; l=$t/loopback/naa.60014051111111; mkdir -p $l/tpgt_1/lun/lun_0; echo naa.60014051111112 >$l/tpgt_1/nexus; ln -s $t/core/iblock_0/disk $l/tpgt_1/lun/lun_0/x; sleep 1; for b in /sys/block/sd*; do dd if=/dev/${b##*/} of=/dev/null bs=64k count=10; done
modprobe nbd; modprobe loop; modprobe floppy
