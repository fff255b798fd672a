#!/bin/sh
# run.sh [OPTION...]: what `make compare` does. The options are passed on to egret-bench compare. From the environment:
# MEMCACHED, TWEMPROXY: programs to run in place of the installed ones. BASE: a commit whose build takes part, too. OPTIMISED=yes: of build/optimised, not of build/release.
# A run of everything replaces the tables of docs/benchmarks/results.md, README.md's six rows and the figures. A run with BASE or OPTIMISED or of some rows (--case) only prints
# its tables, and leaves its figures in build/compare-part.json. With --namespaces it replaces those of docs/benchmarks/between-hosts.md instead.
set -eu
cd "$(dirname "$0")/../../.."
here=tools/bench/compare
figures=docs/benchmarks/figures
is_part=
is_between_hosts=
programs=build/release
if [ "${OPTIMISED:-}" = yes ]; then
  programs=build/optimised
  is_part=yes
  [ -e $programs/is_complete ] || { echo "\`make optimised\` builds what is to be compared" >&2; exit 1; }
fi
for option in "$@"; do
  case $option in
    --case*) is_part=yes ;;
    --namespaces) is_between_hosts=yes ;;
  esac
done
[ -z "${MEMCACHED:-}" ] || set -- --memcached "$MEMCACHED -t 1" "$@"
[ -z "${TWEMPROXY:-}" ] || set -- --twemproxy "$TWEMPROXY" "$@"
if [ -n "${BASE:-}" ]; then
  base=$($here/base.sh "$BASE")
  set -- --base "$base" --base-name "$(git rev-parse --short "$BASE^{commit}")" "$@"
  is_part=yes
fi
if [ -n "$is_part" ]; then
  exec build/release/egret-bench compare --spawn-egret $programs "$@" --json build/compare-part.json
fi
if [ -n "$is_between_hosts" ]; then
  build/release/egret-bench compare --spawn-egret build/release "$@" --json build/compare-hosts.json --markdown build/compare-hosts.md
  cp build/compare-hosts.json $figures/compare-hosts.json
  exec $here/into_readme.py --between-hosts build/compare-hosts.md
fi
build/release/egret-bench compare --spawn-egret build/release --sweep "$@" --json build/compare.json --markdown build/compare.md
build/release/egret-bench plot build/compare.json -o $figures
cp build/compare.json $figures/compare.json
$here/into_readme.py build/compare.md
