#!/bin/bash
# prove.sh EGRET_BACKEND EGRET_PROXY, in a guest: --doctor is content with a host on which all is well, names what is
# missing on one after the other on which it is not, and the daemons then say the same. Authentication over verbs.
set -uo pipefail
backend=$1 proxy=$2
where=rdma:$EGRET_GUEST_ADDRESS:11311
work=$(mktemp -d)
failures=0
said='' status=0

examine() { # examine COMMAND...: keeps what it says and its status
  said=$("$@" 2>&1) && status=0 || status=$?
}
expect_status() {
  ((status == $1)) && return
  echo "FAILED: $2: status $status instead of $1:"$'\n'"$said"
  failures=$((failures + 1))
}
expect() { # expect WHAT REGEX: a line of what was said
  grep -Eq -- "$2" <<<"$said" && return
  echo "FAILED: $1: no line like '$2' in:"$'\n'"$said"
  failures=$((failures + 1))
}
expect_none() {
  grep -Eq -- "$2" <<<"$said" || return 0
  echo "FAILED: $1: a line like '$2' in:"$'\n'"$said"
  failures=$((failures + 1))
}
wait_for_line() { # wait_for_line FILE TEXT
  local tenths
  for ((tenths = 0; tenths < 300; tenths++)); do
    grep -Fq -- "$2" "$1" && return
    sleep 0.1
  done
  echo "FAILED: '$2' did not come in $1:"
  cat "$1"
  exit 1
}
start_backend() { # start_backend COMMAND...: sets `daemon`
  "$@" >"$work/log" 2>&1 &
  daemon=$!
  wait_for_line "$work/log" "serving"
}
stop_backend() {
  kill "$daemon"
  wait "$daemon"
}
# Root without the one capability that lifts the limit, and with a limit of 64 KiB.
pinched() { # in a shell of its own, which it becomes
  ulimit -l 64 && exec setpriv --bounding-set=-ipc_lock "$@"
}
# Without device files, as in a container that was given none.
contained() {
  unshare -m sh -c 'mount -t tmpfs none /dev/infiniband && exec "$@"' - "$@"
}
secret() { # secret NAME
  (umask 077 && head -c 32 /dev/urandom | base64 >"$work/$1")
  echo "secret_file=$work/$1"
}
secret=$(secret right)
other=$(secret wrong)
cd "$work" || exit 1

echo "--- a host on which all is well"
examine "$backend" --doctor --set "listen=$where" --set "$secret"
expect_status 0 "a good host"
expect_none "a good host" '^(warn|FAIL)'
expect "a good host" '^ok   rxe0 port 1: state 4: ACTIVE, Ethernet \(RoCE\)$'
expect "a good host" "^ok   rxe0 port 1 GIDs: .* = ::ffff:$EGRET_GUEST_ADDRESS \(RoCE v2"
expect "a good host" '^ok   /dev/infiniband/uverbs0: '
expect "a good host" '^ok   libibverbs: has a driver for 1 device$'
expect "a good host" '^ok   memlock: .* may be needed: slots of [0-9]+MiB \(session_memory_total\) for [0-9]+ sessions \(max_sessions\), and 20KiB of queues for each$'
expect "a good host" '^ok   rxe0: rxe: Soft-RoCE'
expect "a good host" '^ok   rxe0 port 1 MTU: 9000 of dummy0, so queue pairs have 4096$'
expect "a good host" "^ok   listen $where: can be listened on$"
echo "$said"

echo "--- memory that may be pinned"
examine pinched "$backend" --doctor --set "listen=$where" --set "$secret"
expect_status 1 "64 KiB"
expect "64 KiB" '^FAIL memlock: 64KiB may be pinned, [0-9]+MiB may be needed: .*not one session has room => systemd: LimitMEMLOCK=infinity; docker: --ulimit memlock=-1'
start_backend pinched "$backend" --set "listen=$where" --set memory=16MiB --set "$secret"
wait_for_line log "warning: memlock: 64KiB may be pinned"
# With all slots at once: a session's first two fit into what may be pinned.
examine "$proxy" --doctor --set "backends=$where" --set "$secret" --set idle_window=0
expect_status 1 "a backend that may not pin"
expect "a backend that may not pin" "^FAIL backend $where: refused: session_memory_total = .*64KiB that may be pinned"
stop_backend

echo "--- secrets, over verbs"
start_backend "$backend" --set "listen=$where" --set memory=16MiB
wait_for_line log "warning: secret_file: none is set, and an rdma: address serves whoever can reach it"
examine "$proxy" --doctor --set "backends=$where" --set "$secret"
expect "a backend without a secret" "^FAIL backend $where: refused: the proxy has a secret_file and this backend has none"
stop_backend
start_backend "$backend" --set "listen=$where" --set memory=16MiB --set "$secret" --set sessions_per_peer=1
examine "$proxy" --doctor --set "backends=$where" --set "$secret"
expect_status 0 "the right secret"
expect "the right secret" '^ok   rxe0 port 1 traffic class: none is set, .* => if the fabric has a lossless class for RoCE, set tos to it'
expect "the right secret" "^ok   backend $where: gives a session: "
examine "$proxy" --doctor --set "backends=$where" --set "$other"
expect_status 1 "a wrong secret"
expect "a wrong secret" "^FAIL backend $where: refused: the proxy's secret is not this backend's"
examine "$proxy" --doctor --set "backends=$where"
expect "no secret" "^FAIL backend $where: refused: this backend serves only proxies that hold its secret"
examine grep -c "session .* open" log
expect "sessions that were opened" '^1$'
examine "$backend" --doctor --set "listen=$where" --set "$secret"
expect_status 0 "an address in use"
expect "an address in use" "^warn listen $where: Address already in use => well if this daemon is already running"

echo "--- quota of an address"
"$proxy" --set "backends=$where" --set "$secret" --set workers=2 --set listen=tcp:127.0.0.1:11211 >proxy.log 2>&1 &
client=$!
wait_for_line proxy.log "sessions_per_peer = 1, and $EGRET_GUEST_ADDRESS has 1 open already"
kill "$client"
wait "$client"
stop_backend

echo "--- what is missing"
examine contained "$backend" --doctor --set "listen=$where" --set "$secret"
expect_status 1 "no device files"
expect "no device files" '^FAIL /dev/infiniband/uverbs0: missing, though the kernel has rxe0 => .*docker run --device /dev/infiniband/uverbs0'
expect "no device files" '^FAIL /dev/infiniband/rdma_cm: missing'
examine contained "$backend" --doctor --set listen=shm:@doctor
expect_status 0 "no device files, and none needed"
expect_none "no device files, and none needed" '^(warn|FAIL)'
examine "$backend" --doctor --set listen=rdma:10.77.0.1:11311 --set "$secret"
expect_status 1 "another's address"
expect "another's address" '^FAIL listen rdma:10.77.0.1:11311: .* => no interface of this host has that address'
ip link set dummy0 down
examine "$backend" --doctor --set "listen=$where" --set "$secret"
expect_status 1 "a port that is down"
expect "a port that is down" '^FAIL rxe0 port 1: state 1: DOWN.*ip link set'
rdma link delete rxe0
examine "$backend" --doctor --set "listen=$where" --set "$secret"
expect_status 1 "no device"
expect "no device" '^FAIL RDMA: no device in /sys/class/infiniband => .*rdma link add'

((failures == 0)) || exit 1
echo "the doctor is content with a good host, and named all that was missing on the others"
