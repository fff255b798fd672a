#!/bin/bash
# train.sh BUILD [SECONDS]: the loads by whose counts the preset `optimised` is compiled. Each runs for so many seconds (0.8), on
# loopback, against one process and against two daemons, with both ways in which egret-bench's clients send.
#
#   small and large values, one request at a time, 16 under way and 50 in a multiget, text and binary protocol, a few a second
set -euo pipefail
build=$(realpath "$1") seconds=${2:-0.8}
conf=$(dirname "$(realpath "$0")")/../..

load() {
  "$build/egret-bench" --rounds 1 -t "$seconds" --warmup 0.2 "$@" >/dev/null
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

loads_of --spawn "$build/egret-memcached -t 1 -m 512"
loads_of --spawn-egret "$build" --conf "$conf"
