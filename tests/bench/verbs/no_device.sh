#!/bin/bash
# no_device.sh EGRET_BENCH: on a host without an RDMA device, `verbs` says so in one line and ends with 1.
set -uo pipefail
[[ -n $(ls /sys/class/infiniband 2>/dev/null) ]] && { echo "skipped: this host has an RDMA device"; exit 77; }
for side in "--listen 127.0.0.1:18515" "--connect 127.0.0.1:18515" "--loop 127.0.0.1:18515"; do
  # shellcheck disable=SC2086
  said=$("$1" verbs $side 2>&1)
  status=$?
  echo "$side: $status: $said"
  ((status == 1)) && (($(wc -l <<<"$said") == 1)) && [[ $said == *"no RDMA device"* ]] || { echo "FAILED"; exit 1; }
done
