modprobe i2c-stub chip_addr=0x50,0x48; modprobe i2c-dev; sleep 0.2; for b in 0 1 2 3; do i2cset -y btrfs 0x50 1 7; i2cget -y btrfs 0x50 1; i2cdump -y -r 0-15 btrfs 0x50 b; i2cget -y btrfs 0x48 0 w; done
echo lm75 0x48 >/sys/bus/i2c/devices/i2c-0/new_device; echo lm75 0x48 >/sys/bus/i2c/devices/i2c-1/new_device; modprobe lm75; sleep 0.2; cat /sys/class/hwmon/*/temp1_input; echo 50000 >/sys/class/hwmon/hwmon0/temp1_max
modprobe gpio-mockup gpio_mockup_ranges=-1,8 ; modprobe gpio-sim; c=/sys/class/gpio/; for g in $c/gpiochip*; do b=$(cat $g/base); echo $b >$c/export; echo out >$c/gpio$b/direction; echo 1 >$c/gpio$b/value; cat $c/gpio$b/value; echo in >$c/gpio$b/direction; echo $b >$c/unexport; done
modprobe dummy_hcd; modprobe libcomposite; modprobe g_zero; sleep 1.5; rmmod g_zero; modprobe g_mass_storage file=/dev/ram0 stall=0; sleep 2; rmmod g_mass_storage; rmmod dummy_hcd
modprobe vivid n_devs=1; modprobe vim2m; sleep 0.5; v4l2-ctl -d /dev/video0 --stream-mmap --stream-count=3; timeout 5 head -c 200000 /dev/video0 >/dev/null
modprobe vkms; sleep 0.3; timeout 2 cat /dev/dri/card0; M=/host/usr/bin/modetest; echo 1 >/sys/class/graphics/fb0/blank; cat /dev/urandom 2>/dev/null | head -c 10000 >/dev/fb0
modprobe softdog; echo V >/dev/watchdog; timeout 2 watchdog -t 1 -F /dev/watchdog
modprobe snd-dummy; modprobe snd-hda-intel; modprobe snd-aloop; timeout 2 aplay -D hw:0 -d 1 /dev/urandom
modprobe msr; modprobe thermal; modprobe intel_powerclamp; for z in /sys/class/thermal/*; do cat $z/temp; echo 1 >$z/emul_temp; done
modprobe test_power; modprobe rtc-test; modprobe mtdram; modprobe cpufreq_ondemand; modprobe devfreq; modprobe pwm-lpss; modprobe regulator; modprobe virtio_rng; modprobe edac_core; modprobe mce-inject; modprobe hwpoison-inject; modprobe bpf_test; modprobe userio; modprobe kvm; modprobe kvm-amd; modprobe kvm-intel
modprobe mlx5_core; modprobe rdma_rxe; modprobe siw; rdma link add rxe0 type rxe netdev lo; rdma link add siw0 type siw netdev lo; sleep 0.5; modprobe ib_umad; modprobe rdma_cm; modprobe rpcrdma; rdma link show; rdma res; ls /dev/infiniband; modprobe nvme-rdma; echo 'transport=rdma,traddr=127.0.0.1,nqn=test' >/dev/nvme-fabrics; rdma link del rxe0; rdma link del siw0
modprobe binder_linux; mkdir -p /mnt/lab/binder; mount -t binder binder /mnt/lab/binder && umount /mnt/lab/binder
echo 1 >/sys/devices/system/memory/soft_offline_page; grep -v x /proc/self/pagemap | head -c 1
