#!/bin/busybox sh
# First process of a guest with a disk of its own, in the initramfs: loads the modules, mounts the disk, and hands over to
# the disk's systemd.
busybox=/bin/busybox
$busybox mount -t proc proc /proc
$busybox mount -t sysfs sys /sys
$busybox mount -t devtmpfs dev /dev
while read -r module; do
  $busybox insmod "/modules/$module" || echo "init: cannot load $module"
done </modules/order
$busybox mkdir -p /root
$busybox mount -t ext4 /dev/vda /root
for dir in proc sys dev; do $busybox mount -o move /$dir /root/$dir; done
exec $busybox switch_root /root /lib/systemd/systemd
