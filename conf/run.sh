#!/bin/bash
# What `make run` runs: installs, builds, starts both daemons with the files of this folder, stops both at the end.
#
#   run.sh HOST:PORT
#
# Ends with status 0 on Ctrl-C and SIGTERM, with 1 when something could not start or a daemon died.
set -uo pipefail
cd "$(dirname "$0")/.."

listen=${1:?HOST:PORT}
host=${listen%:*}
host=${host#[} host=${host%]}
port=${listen##*:}
start_seconds=30  # for the proxy to answer
stop_seconds=10   # for a daemon to end, before it is killed

fail() {
  echo "egret: $*" >&2
  exit 1
}

# Sends one line and prints the first line of the answer.
ask() {
  local answer
  exec 3<>"/dev/tcp/$host/$port" || return 1
  printf '%s\r\n' "$1" >&3
  IFS= read -r -t 2 answer <&3
  exec 3>&-
  printf '%s' "${answer%$'\r'}"
} 2>/dev/null

stop_one() {
  local pid=$1 tenths=$((stop_seconds * 10))
  [[ -n $pid ]] && kill -TERM "$pid" 2>/dev/null || return 0
  while ((tenths-- > 0)) && kill -0 "$pid" 2>/dev/null; do sleep 0.1; done
  kill -KILL "$pid" 2>/dev/null || return 0
}

# The proxy first: it answers what is in flight, for which it needs the backend.
stop() {
  trap '' INT TERM HUP
  stop_one "${proxy:-}"
  stop_one "${backend:-}"
  [[ -n ${runtime:-} ]] && rm -rf "$runtime"
}

# make passes SIGTERM on to us, but not a SIGINT that was sent to make alone, and waits for us then for ever. It is seen by
# make no longer catching SIGINT (bit 1 of SigCgt). A parent that was killed is gone altogether.
parent=$PPID
parent_comm=$(cat "/proc/$parent/comm" 2>/dev/null)
parent_gave_up() {
  [[ $parent_comm == make ]] || return 1
  local caught
  caught=$(sed -n 's/^SigCgt:\s*//p' "/proc/$parent/status" 2>/dev/null)
  [[ -z $caught ]] || (((16#$caught & 2) == 0 && catches_int))
}
catches_int=$((16#$(sed -n 's/^SigCgt:\s*//p' "/proc/$parent/status" 2>/dev/null || echo 0) & 2 ? 1 : 0))

[[ $listen == *:* && $port =~ ^[0-9]+$ && -n $host ]] || fail "LISTEN: expected HOST:PORT, got \"$listen\""
if (exec 3<>"/dev/tcp/$host/$port") 2>/dev/null; then
  fail "$listen is taken; choose another address: make run LISTEN=127.0.0.1:22122"
fi

tests/packages/install.sh tests/packages/build.txt || exit 1
cmake --preset release >/dev/null || fail "cmake --preset release failed"
cmake --build build/release --target egret-backend egret-proxy || fail "the build failed"

runtime=$(mktemp -d "${TMPDIR:-/tmp}/egret.XXXXXX") || fail "cannot make a directory for the socket"
trap stop EXIT
trap 'exit 0' INT TERM HUP

# Process groups of their own: a Ctrl-C reaches this script alone, which stops them in order. If it is killed, they end too.
set -m
socket=shm:$runtime/backend.sock
setpriv --pdeathsig TERM build/release/egret-backend --config conf/egret-backend.yaml --set "listen=$socket" \
  </dev/null &
backend=$!
setpriv --pdeathsig TERM build/release/egret-proxy --config conf/egret-proxy.yaml --set "listen=tcp:$listen" \
  --set "backends=$socket" </dev/null &
proxy=$!
disown "$backend" "$proxy"  # no job messages: we say ourselves who ended
set +m

are_alive() {
  kill -0 "$backend" 2>/dev/null && kill -0 "$proxy" 2>/dev/null
}
for ((tenth = 0; tenth < start_seconds * 10; ++tenth)); do
  are_alive || fail "a daemon ended at start; see above"
  [[ $(ask version) == VERSION* && $(ask "get egret") == END ]] && break
  sleep 0.1
done
((tenth < start_seconds * 10)) || fail "the proxy does not answer on $listen"

cat <<READY

Egret serves memcached clients on $listen (Ctrl-C stops it). Try:

  exec 3<>/dev/tcp/$host/$port; printf 'set k 0 0 5\r\nhello\r\nget k\r\nstats\r\nquit\r\n' >&3; cat <&3    # in bash

or any memcached client;
  build/release/egret-backend --help; build/release/egret-proxy --help     # the options; files: conf/

READY

while are_alive && ! parent_gave_up; do
  sleep 1 &
  wait $!
done
are_alive && exit 0
kill -0 "$backend" 2>/dev/null && fail "egret-proxy ended"
fail "egret-backend ended"
