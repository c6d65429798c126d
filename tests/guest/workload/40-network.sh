modprobe veth; modprobe bridge; modprobe tun; modprobe sch_netem; modprobe openvswitch; modprobe vxlan
/host/sbin/ip netns add n1 2>/dev/null;  /host/sbin/ip netns add n1
/host/sbin/ip link add v0 type veth peer name v1; /host/sbin/ip link set v1 netns n1; /host/sbin/ip addr add 10.1.1.1/24 dev v0; /host/sbin/ip link set v0 up
/host/sbin/ip netns exec n1 /host/sbin/ip addr add 10.1.1.2/24 dev v1; /host/sbin/ip netns exec n1 /host/sbin/ip link set v1 up; /host/sbin/ip netns exec n1 /host/sbin/ip link set lo up
ping -c 2 -i 0.1 10.1.1.2; ping -c 1 -s 4000 10.1.1.2; ping6 -c 1 ff02::1%v0
/host/sbin/ip link add br0 type bridge mcast_snooping 1; /host/sbin/ip link set v0 master br0; /host/sbin/ip link set br0 up; /host/sbin/ip addr add 10.1.1.3/24 dev br0; ping -c 2 -i 0.1 -I br0 10.1.1.2
bridge fdb add 00:11:22:33:44:55 dev v0 master; bridge fdb del 00:11:22:33:44:55 dev v0 master; /host/sbin/ip link set v0 nomaster
/host/sbin/tc qdisc add dev v0 root netem delay 1ms loss 20%; ping -c 5 -i 0.1 -W 1 10.1.1.2; /host/sbin/tc qdisc replace dev v0 root fq_codel; /host/sbin/tc qdisc del dev v0 root
/host/sbin/ip neigh add 10.1.1.9 lladdr 00:11:22:33:44:66 dev v0; /host/sbin/ip neigh del 10.1.1.9 dev v0; /host/sbin/ip neigh flush all
/host/sbin/ip -6 route add 2001:db8::/64 dev v0; /host/sbin/ip -6 route get 2001:db8::1; /host/sbin/ip route get 8.8.8.8; /host/sbin/ip route add 9.9.9.0/24 dev v0; /host/sbin/ip route del 9.9.9.0/24
/host/sbin/ip link set dev v0 mtu 1400; /host/sbin/ip link set v0 address 02:00:00:00:00:11
echo 1 >/proc/sys/net/ipv4/ip_forward
( echo hi | nc -l -p 5555 >/tmp/nc1 & sleep 0.2; echo hallo | nc -w 1 127.0.0.1 5555 ); /lab/bin/events sockets
( /host/sbin/ip netns exec n1 nc -l -p 5556 >/dev/null & sleep 0.2; /host/sbin/tc qdisc add dev v0 root netem loss 30%; dd if=/dev/zero bs=1k count=300 | timeout 8 nc 10.1.1.2 5556; /host/sbin/tc qdisc del dev v0 root )
modprobe tls; modprobe l2tp_ppp; modprobe l2tp_eth; /host/sbin/ip l2tp add tunnel tunnel_id 1 peer_tunnel_id 1 encap udp local 10.1.1.1 remote 10.1.1.2 udp_sport 6000 udp_dport 5000; /host/sbin/ip l2tp add session tunnel_id 1 session_id 1 peer_session_id 1; /host/sbin/ip link set l2tpeth0 up; sleep 0.3; /host/sbin/ip l2tp del session tunnel_id 1 session_id 1; /host/sbin/ip l2tp del tunnel tunnel_id 1
modprobe tipc; modprobe qrtr; modprobe rxrpc; modprobe smc; modprobe dccp; modprobe sctp
modprobe netdevsim; echo '1 1' >/sys/bus/netdevsim/new_device; sleep 0.2; modprobe devlink; devlink dev show; devlink health show; devlink trap show; devlink dev flash netdevsim/netdevsim1 file x; echo 1 >/sys/kernel/debug/netdevsim/netdevsim1/health/break_health; echo 1 >/sys/bus/netdevsim/del_device
modprobe mac80211_hwsim radios=2; sleep 0.5; W=iw
iw dev; iw reg set DE; for w in wlan0 wlan1; do iw dev $w info; done
iw phy phy0 interface add mon0 type monitor; /host/sbin/ip link set mon0 up; /host/sbin/ip link set wlan0 up; iw dev wlan0 scan freq 2412; iw dev wlan0 set power_save on; /host/sbin/ip link set wlan0 down; iw dev wlan0 set type ibss; /host/sbin/ip link set wlan0 up; iw dev wlan0 ibss join test 2412; /host/sbin/ip link set wlan1 down; iw dev wlan1 set type ibss; /host/sbin/ip link set wlan1 up; iw dev wlan1 ibss join test 2412; /host/sbin/ip addr add 10.2.2.1/24 dev wlan0; /host/sbin/ip addr add 10.2.2.2/24 dev wlan1; sleep 1; ping -c 1 -W 1 10.2.2.2; iw dev wlan0 ibss leave; iw dev wlan1 ibss leave; /host/sbin/ip link set wlan0 down; iw dev wlan0 set type managed; /host/sbin/ip link set wlan1 down; iw dev wlan1 set type managed
cat >/tmp/ap.conf <<'S'
interface=wlan0
driver=nl80211
ssid=lab
hw_mode=g
channel=1
wpa=2
wpa_passphrase=12345678
wpa_key_mgmt=WPA-PSK
rsn_pairwise=CCMP
S
cat >/tmp/sta.conf <<'S'
ctrl_interface=/tmp/wpa
network={
ssid="lab"
psk="12345678"
}
S
hostapd -B /tmp/ap.conf; /host/sbin/ip link set wlan1 up; wpa_supplicant -B -i wlan1 -c /tmp/sta.conf; sleep 4; iw dev wlan1 link; iw dev wlan0 station dump; iw dev wlan1 survey dump; iw dev wlan1 get power_save; iw phy phy0 info >/dev/null; killall wpa_supplicant hostapd; sleep 0.3; rmmod mac80211_hwsim
modprobe mac802154_hwsim; modprobe fakelb; modprobe ieee802154; /host/sbin/ip link set wpan0 up; sleep 0.2; /host/sbin/ip link set wpan0 down
/host/sbin/ip link del v0; /host/sbin/ip netns del n1; /host/sbin/ip link del br0
