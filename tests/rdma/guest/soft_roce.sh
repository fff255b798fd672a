#!/bin/bash
# soft_roce.sh ID GUESTS: gives this guest the Soft-RoCE device rxe0, at 10.9.0.(ID + 1). A single guest's is on a dummy network device
# (loopback itself cannot carry it), that of one of two on the wire between them.
set -eu
id=$1 guests=$2
device=dummy0
((guests > 1)) && device=$(cd /sys/class/net && ls -d e* | head -n 1)
[[ -e /sys/class/net/$device ]] || ip link add dummy0 type dummy
ip link set lo up
ip link set "$device" mtu 9000
echo 0 >"/proc/sys/net/ipv6/conf/$device/accept_dad"
ip addr add "10.9.0.$((id + 1))/24" dev "$device"
ip link set "$device" up
rdma link add rxe0 type rxe netdev "$device"

# rxe works in ksoftirqd: at real-time priority it preempts a busy poller at once, not at the next tick.
for process in /proc/[0-9]*; do
  case $(cat "$process/comm" 2>/dev/null) in ksoftirqd*) chrt -f -p 1 "${process#/proc/}" || true ;; esac
done
