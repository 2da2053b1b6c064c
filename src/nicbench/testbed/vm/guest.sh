# Runs in the guest as its first process, from its real root file system on.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C
cd /run/nicbench-guest || exit 1
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mount -t debugfs debugfs /sys/kernel/debug
mount -t hugetlbfs hugetlbfs /dev/hugepages 2>/dev/null
mount -t bpf bpf /sys/fs/bpf 2>/dev/null
hostname "$(cat name)"
ip link set dev lo up
# Nobody speaks unasked: neighbours and routers are not looked for on wires that frames are counted on.
for setting in all default; do
    echo 1 >"/proc/sys/net/ipv6/conf/$setting/disable_ipv6"
done 2>/dev/null
while read -r driver; do
    modprobe "$driver" || echo "nicbench: no driver $driver"
done <drivers
# Cards are called as in the bench file; they are told apart by their addresses.
while read -r address name; do
    for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
        for device in /sys/class/net/*; do
            [ "$(cat "$device/address")" = "$address" ] || continue
            ip link set dev "${device##*/}" name "$name"
        done
        [ -e "/sys/class/net/$name" ] && break
        sleep 0.1
    done
done <cards
# What runs here by the controller's word is run by the agent; it begins anew should it ever end.
for name in /sys/class/virtio-ports/*/name; do
    [ "$(cat "$name")" = nicbench ] || continue
    port=/dev/$(basename "${name%/name}")
    (while :; do
        ./agent "$port"
        sleep 0.2
    done) &
done
echo "nicbench: ready after $(cut -d' ' -f1 /proc/uptime) s"
# What has ended and lost its parent is waited for here.
while :; do wait; sleep 3600 & wait $!; done
