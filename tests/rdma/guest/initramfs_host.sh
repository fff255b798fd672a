#!/bin/busybox sh
# First process of a guest, in the initramfs: loads the modules, lays a tmpfs over the host's root (9p, read-only), and
# hands over to guest_main.sh with the host's binaries underneath.
busybox=/bin/busybox
$busybox mount -t proc proc /proc
$busybox mount -t sysfs sys /sys
$busybox mount -t devtmpfs dev /dev
while read -r module; do
  $busybox insmod "/modules/$module" || echo "init: cannot load $module"
done </modules/order

options=trans=virtio,version=9p2000.L,msize=512000
$busybox mkdir -p /host /scratch /root
$busybox mount -t 9p -o $options,ro,cache=loose hostroot /host
$busybox mount -t tmpfs -o size=75% scratch /scratch
$busybox mkdir /scratch/upper /scratch/work
$busybox mount -t overlay -o lowerdir=/host,upperdir=/scratch/upper,workdir=/scratch/work overlay /root

for dir in proc sys dev; do $busybox mount -o move /$dir /root/$dir; done
$busybox mkdir -p /root/dev/pts /root/dev/shm /root/share
$busybox mount -t devpts devpts /root/dev/pts
for dir in dev/shm run; do $busybox mount -t tmpfs tmpfs /root/$dir; done
$busybox mount -t 9p -o $options,rw,cache=none share /root/share
exec $busybox switch_root /root /bin/bash /share/guest_main.sh
