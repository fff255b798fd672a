#!/bin/bash
# omissions.sh PROGRAM: in the guest; leaves out one step of the protocol after the other and expects each run to notice.
# The first run leaves out nothing and must lose nothing: so what the others lose, they lose for want of the step.
# Few threads and one message at a time: nobody else's traffic wakes a thread that should have been woken for itself.
set -euo pipefail
program=$1
seed=${EGRET_SEED:-1}
readonly shape=(--mode sleep --sessions 1 --partitions 2 --window 1 --messages 6000 --wait-ms 1000 --stop-after 1)
readonly seconds=90 lost=3 wrong=4
failures=0

leave_out() { # leave_out STEP STATUS OPTION...
  local status=0 output
  output=$(timeout "$seconds" "$program" --seed "$seed" --omit "$1" "${shape[@]}" "${@:3}") || status=$?
  grep "^seed" <<<"$output" || true
  if ((status == lost)); then
    # Lost, and not merely late: every partition was blocked when the client gave up.
    grep -m 1 "^LOST.*blocked partitions: 0 1$" <<<"$output" || status=late
  fi
  [[ $status == "$2" ]] && return
  echo "FAILED: expected status $2 with --omit $1, got $status"
  tail -n 12 <<<"$output"
  failures=$((failures + 1))
}

leave_out nothing 0 --messages 1500
for step in recheck asleep-fence rearm-poll rearm-slots-only drain-first want-fetch want-order want-fence client-rearm; do
  leave_out "$step" "$lost"
done
leave_out reply-slots "$lost" --window 4 # with a window of one there is nothing to mix up
leave_out checksum "$wrong"
exit "$((failures > 0))"
