#!/bin/bash
# prove.sh PROGRAM: in the guest; the protocol in full, in several shapes. Not one result may be lost or wrong.
# EGRET_SEED=N draws other delays. The guest has two processors; half of the runs use only one of them.
set -euo pipefail
program=$1
seed=${EGRET_SEED:-1}
readonly seconds=90 # for one run; a few are expected on an idle machine

prove() { # prove CPUS OPTION...
  local cpus=$1 status=0
  shift
  echo "--- $* (processors $cpus)"
  timeout "$seconds" taskset -c "$cpus" "$program" --seed "$seed" --wait-ms 5000 "$@" || status=$?
  ((status == 0)) || { echo "FAILED with status $status: $* (seed $seed, processors $cpus)"; exit "$status"; }
}

prove 0 --mode fetch --messages 1500   # rule a alone: rings
prove 0,1 --mode fetch --messages 1500
prove 0 --mode sleep --messages 1500   # rule b on top of it: want and deliver
prove 0,1 --mode sleep --messages 1500
prove 0,1 --mode mix --messages 1500
prove 0 --mode sleep --messages 800 --sessions 1 --partitions 2 --window 1 # nobody else's traffic wakes anybody
prove 0,1 --mode mix --messages 1000 --sessions 4 --partitions 4 --window 8
