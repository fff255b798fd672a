#!/bin/bash
# preloaded.sh BUILD COMMAND...: runs the tests with libegret-preload.so in their process and in every client that they start, and
# sees that slots were used: thousands of ops, by many sockets.
set -u
build=$1
shift
log=$(mktemp)
trap 'rm -f "$log"' EXIT
EGRET_PRELOAD_LOG=$log "$build/egret-run" "$@" || exit 1
awk '/ops by slots/ { sockets++; ops += $4; aside += $8 }
     END { print sockets + 0 " sockets, " ops + 0 " ops by slots, " aside + 0 " commands over their connections"
           exit !(sockets > 500 && ops > 50000 && aside > 100) }' "$log"
