#!/bin/bash
# run.sh BUILD LISTEN: both daemons in the foreground with the files of this folder, until Ctrl-C, SIGTERM or the end of one.
# Only the addresses are set here: LISTEN (host:port) for clients, a socket in a fresh folder between the two.
set -uo pipefail
conf=$(dirname "$(realpath "$0")"); build=$1 listen=$2
host=${listen%:*} port=${listen##*:}; host=${host#[}; host=${host%]}
[[ $listen == *:* && $port =~ ^[0-9]+$ ]] || { echo "run: LISTEN is HOST:PORT, such as 127.0.0.1:11211, not '$listen'" >&2; exit 1; }
runtime=$(mktemp -d /tmp/egret.XXXXXX); backend= proxy= status=0

# The proxy first: it answers what is in flight, and needs the backend for that.
stop() {
  trap '' INT TERM
  for pid in $proxy $backend; do kill -TERM "$pid" 2>/dev/null && wait "$pid"; done
  rm -rf "$runtime"
  exit "$status"
}
trap stop INT TERM EXIT

# Whether a client is served, backend and all.
answers() {
  exec 3<>"/dev/tcp/$host/$port" && printf 'get egret\r\n' >&3 && IFS= read -r -t 1 line <&3 && [[ $line == END* ]]
} 2>/dev/null

if (exec 3<>"/dev/tcp/$host/$port") 2>/dev/null; then
  echo "run: $listen is in use; choose another address: make run LISTEN=127.0.0.1:22122" >&2; status=1; exit 1
fi
# In process groups of their own, so that Ctrl-C reaches this script alone and the order of stopping is ours.
set -m
"$build/egret-backend" --config "$conf/egret-backend.yaml" --set "listen=shm:$runtime/backend.sock" & backend=$!
for _ in $(seq 100); do [[ -S $runtime/backend.sock ]] && break; kill -0 "$backend" 2>/dev/null || break; sleep 0.02; done
"$build/egret-proxy" --config "$conf/egret-proxy.yaml" --set "listen=tcp:$listen" --set "backends=shm:$runtime/backend.sock" & proxy=$!
set +m
for _ in $(seq 100); do
  (answers) && break
  kill -0 "$backend" 2>/dev/null && kill -0 "$proxy" 2>/dev/null || { status=1; exit 1; }
  sleep 0.1
done
(answers) || { echo "run: no answer on $listen" >&2; status=1; exit 1; }
cat <<TRY

Egret is ready on $listen. Try, in another terminal:
    printf 'set greeting 0 0 5\r\nhello\r\nget greeting\r\nquit\r\n' | nc $host $port
    memcached clients: point them at $listen        load: $build/egret-bench --connect $listen --preload
Ctrl-C stops it.

TRY
wait -n "$backend" "$proxy"; status=$?
for pid in $backend $proxy; do
  kill -0 "$pid" 2>/dev/null || echo "run: a daemon has ended (status $status); stopping the other" >&2
done
exit "$status"
