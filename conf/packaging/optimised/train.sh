#!/bin/bash
# train.sh BUILD [SECONDS]: the loads by whose counts the preset `optimised` is compiled. Each runs for SECONDS (0.8 if not given), on
# loopback, against egret-memcached as one process and against both daemons, in both ways in which egret-bench's clients send.
#
#   small and large values; one request at a time, 16 under way, 50 in a multiget; text and binary protocol; as fast as can be, and paced
#
# A program writes its counts when it ends as it is asked to. BUILD has no blank in its path.
set -euo pipefail
build=$(realpath "$1") seconds=${2:-0.8}
conf=$(realpath "$(dirname "$(realpath "$0")")/../..")

# A port that it finds free may be another's a moment later: a load may be tried once more.
load() {
  "$build/egret-bench" --rounds 1 -t "$seconds" --warmup 0.2 "$@" >/dev/null || "$build/egret-bench" --rounds 1 -t "$seconds" --warmup 0.2 "$@" >/dev/null
}

loads_of() {
  local sending
  for sending in rounds at-once; do
    load "$@" --sending $sending -v 32
    load "$@" --sending $sending -v 32 -d 16
    load "$@" --sending $sending -v 32 -m 50 -r 1
    load "$@" --sending $sending -v 1024
    load "$@" --sending $sending -v 1024 -d 16
    load "$@" --sending $sending -v 102400 -k 2000
    load "$@" --sending $sending -v 32 --binary
    load "$@" --sending $sending -v 32 --binary -d 16
  done
  load "$@" -v 32 --rate 20000
  load "$@" -v 32 -c 1 --rate 1000
}

user=()
((EUID != 0)) || user=(-u root)  # it may write beside the objects
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
"$build/egret-memcached" -t 1 -m 512 -l 127.0.0.1 -p "$port" "${user[@]}" &
served=$!
trap 'kill $served 2>/dev/null' EXIT
for _ in {1..100}; do
  (: </dev/tcp/127.0.0.1/"$port") 2>/dev/null && break
  sleep 0.1
done
loads_of --connect "127.0.0.1:$port"
trap - EXIT
kill $served
wait $served

loads_of --spawn-egret "$build" --conf "$conf"
