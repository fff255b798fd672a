#!/bin/bash
# Debian's libmemcached-tools: libmemcached_tools.sh HOST PORT text|binary. (In Debian they are called memccat for memcat, and so on.)
set -uo pipefail
server=--servers=$1:$2
binary=()
[[ $3 == binary ]] && binary=(--binary)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failed=0

check() {
  local what=$1; shift
  if "$@" >"$work/said" 2>&1; then
    echo "pass  $what"
  else
    echo "FAIL  $what: $(head -c 500 "$work/said")"
    failed=1
  fi
}
# tool NAME [arguments]: with the server and the protocol. Tools that have no --binary are called by their names.
tool() { local name=$1; shift; "$name" "$server" "${binary[@]}" "$@"; }
not() { ! "$@"; }
gives() { local file=$1; shift; "$@" 2>/dev/null | cmp -s - "$file"; }

printf 'the value of lt-a' >lt-a
head -c 921600 /dev/urandom >lt-large
check "memcp" tool memccp --set lt-a lt-large
# memcat puts a newline behind a value.
{ cat lt-a; echo; } >a.wanted
{ cat lt-large; echo; } >large.wanted
check "memcat" gives a.wanted tool memccat lt-a
check "memcat of 900 KiB" gives large.wanted tool memccat lt-large
check "memcat of nothing" not tool memccat lt-none
check "memcp --add of what is there" not tool memccp --add lt-a
check "memcp --replace" tool memccp --replace lt-a
check "memcp with flags and an expiry" tool memccp --set --flags=77 --expire=1000 lt-a
{ echo 77; cat lt-a; echo; } >flags.wanted
check "memcat --flags" gives flags.wanted tool memccat --flags lt-a
check "memexist" tool memcexist lt-a
check "memexist of nothing" not tool memcexist lt-none
check "memtouch" tool memctouch --expire=100 lt-a
check "memtouch of nothing" not tool memctouch --expire=100 lt-none
check "memping" memcping "$server"
check "memstat" bash -c "memcstat $server | grep -q curr_items"
check "memrm" tool memcrm lt-a
check "memrm of nothing" not tool memcrm lt-a
check "memslap set" timeout 60 memcslap "$server" "${binary[@]}" --test=set --concurrency=4 --execute-number=500
check "memslap get" timeout 60 memcslap "$server" "${binary[@]}" --test=get --concurrency=4 --execute-number=500 --initial-load=500
check "memslap mget" timeout 60 memcslap "$server" "${binary[@]}" --test=mget --concurrency=2 --execute-number=5 --initial-load=500
aslap=()
[[ $3 == binary ]] && aslap=(--binary)
check "memaslap" timeout 60 memcaslap --servers="$1:$2" "${aslap[@]}" --threads=1 --concurrency=8 --execute_number=4000 --verify=1.0
check "memflush" tool memcflush
check "memcat after it" not tool memccat lt-large
exit $failed
