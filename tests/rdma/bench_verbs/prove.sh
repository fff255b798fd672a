#!/bin/bash
# prove.sh EGRET_BENCH: in each of two guests; the first listens for two clients, which the second runs. Both sides must end with 0 and
# print the same report, with every cell filled. Then the same with --advise and one client. Figures are those of an emulation and are not looked at.
set -euo pipefail
here=$(dirname "$(realpath "$0")")
bench=$1
readonly at=10.9.0.1:18515 seconds=240
sweep=(--clients 2 --threads 1,2 --sizes 1,32,256,1024,16384 --fetch-sizes 256,1024 --value-sizes 32,512
       --duration 0.1 --sweep 2,32)

if ((EGRET_GUEST_ID == 0)); then
  # A client whose listener is not there says so. So does a listener that cannot listen.
  ! "$bench" verbs --connect "$at" 2>/share/refused || { echo "FAILED: connected to nobody"; exit 1; }
  ! "$bench" verbs --listen 10.9.0.77:18515 2>>/share/refused || { echo "FAILED: listened on another host's address"; exit 1; }
  (($(wc -l </share/refused) == 2)) || { echo "FAILED: more or less than one line each:"; cat /share/refused; exit 1; }
  cat /share/refused
  touch /share/listening
  trap 'touch /share/done' EXIT # the other guest waits for it, whatever becomes of this
  timeout "$seconds" "$bench" verbs --listen "$at" "${sweep[@]}" >/share/report
  cat /share/report
  python3 "$here/check_report.py" /share/report
  touch /share/advise
  timeout "$seconds" "$bench" verbs --listen "$at" --advise --threads 1 --duration 0.05 --sweep 2,32 >/share/advice
  cat /share/advice
  python3 "$here/check_report.py" /share/advice advise
  exit
fi

until [[ -e /share/listening ]]; do sleep 0.2; done
connect() { # the listener may take a moment
  local try
  for ((try = 0; try < 20; try++)); do
    timeout "$seconds" "$bench" verbs --connect "$at" >"/share/client.$1" 2>"/share/error.$1" && return 0
    grep -q "nobody listens" "/share/error.$1" || break
    sleep 0.5
  done
  cat "/share/error.$1"
  return 1
}
connect 1 &
connect 2
wait $!
until [[ -e /share/advise || -e /share/done ]]; do sleep 0.2; done
[[ ! -e /share/advise ]] || connect 3
until [[ -e /share/done ]]; do sleep 0.2; done
cmp /share/report /share/client.1
cmp /share/report /share/client.2
cmp /share/advice /share/client.3
