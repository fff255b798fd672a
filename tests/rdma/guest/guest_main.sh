#!/bin/bash
# Process 1 of a guest once the host's root is underneath: brings up the Soft-RoCE device rxe0, runs /share/command,
# leaves its status in /share/status.ID and powers the guest off. Output goes to the host through a virtio port.
set -u
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root
kernel_argument() { sed "s/.*egret\.$1=\([0-9]*\).*/\1/" /proc/cmdline; }
id=$(kernel_argument id)
guests=$(kernel_argument guests)
readonly wait_for_others=600 # tenths of a second

for port in /sys/class/virtio-ports/vport*; do
  [[ $(<"$port/name") == output ]] && exec >"/dev/${port##*/}" 2>&1 </dev/null
done

wait_for_all_guests() {
  touch "/share/ready.$id"
  local tenths
  for ((tenths = 0; tenths < wait_for_others; tenths++)); do
    (($(ls /share/ready.* | wc -l) == guests)) && return
    sleep 0.1
  done
  echo "guest $id: the other guest did not come up"
}

hostname "egret$id"
ulimit -l unlimited
bash /share/soft_roce.sh "$id" "$guests" || echo "guest $id: no rxe0"
wait_for_all_guests
export EGRET_GUEST_ID=$id EGRET_GUESTS=$guests EGRET_GUEST_ADDRESS=10.9.0.$((id + 1))
bash /share/command
echo $? >"/share/status.$id.part"
mv "/share/status.$id.part" "/share/status.$id"
sync
echo o >/proc/sysrq-trigger
sleep 60
