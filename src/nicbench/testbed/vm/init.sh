#!/bin/busybox sh
# The first process of a guest: an overlay over the root file system of the machine outside, read-only beneath it.
B=/bin/busybox
$B mount -t proc proc /proc
$B mount -t sysfs sys /sys
$B mount -t devtmpfs dev /dev
for module in /modules/*; do
    $B insmod "$module" || echo "nicbench: $module cannot be loaded"
done
SHARED=trans=virtio,version=9p2000.L,msize=512000,cache=loose
$B mount -t 9p -o "ro,$SHARED" root /lower || echo "nicbench: no root file system"
$B mount -t tmpfs -o size=90% tmpfs /upper
$B mkdir /upper/files /upper/work
$B mount -t overlay -o lowerdir=/lower,upperdir=/upper/files,workdir=/upper/work overlay /root
modules=/root/usr/lib/modules/$($B uname -r)
$B mkdir -p "$modules"
$B mount -t 9p -o "ro,$SHARED" modules "$modules"
for pair in proc:proc sysfs:sys devtmpfs:dev tmpfs:run; do
    $B mount -t "${pair%:*}" "${pair%:*}" "/root/${pair#*:}"
done
# As udev makes them: shells open /dev/fd/63 for what they are given by "<(...)".
$B ln -s /proc/self/fd /root/dev/fd
for number_name in 0:stdin 1:stdout 2:stderr; do
    $B ln -s "/proc/self/fd/${number_name%:*}" "/root/dev/${number_name#*:}"
done
$B mkdir -p /root/dev/shm /root/dev/pts /root/dev/hugepages /root/run/nicbench-guest /root/run/lock
$B mount -t tmpfs tmpfs /root/dev/shm
$B mount -t devpts devpts /root/dev/pts
$B cp /nicbench/* /root/run/nicbench-guest/
exec $B switch_root /root /bin/sh /run/nicbench-guest/guest.sh
