#!/bin/bash
# either_side.sh BUILD COMMAND...: runs COMMAND, a run of tests/conformance, twice: with the proxy of 0.1.0 before a backend of BUILD, and with a
# proxy of BUILD before the backend of 0.1.0. Status 77, "skipped": 0.1.0 is not built (build.sh).
set -uo pipefail
export SUT=egret EGRET_BUILD=$1 PYTHONDONTWRITEBYTECODE=1
shift
older=$(readlink -f "$(dirname "$(realpath "$0")")/../../build/base/0.1.0") || older=
[[ -x $older/bin/egret-proxy ]] || { echo "skipped: 0.1.0 is not built: tests/older/build.sh"; exit 77; }
status=0
echo "--- the proxy of 0.1.0, our backend"
env EGRET_OLDER_PROXY="$older" "$@" || status=1
echo "--- our proxy, the backend of 0.1.0"
env EGRET_OLDER_BACKEND="$older" "$@" || status=1
exit $status
