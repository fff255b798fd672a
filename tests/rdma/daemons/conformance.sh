#!/bin/bash
# conformance.sh BUILD EXPRESSION NAME...: of tests/conformance/test_NAME.py what pytest -k EXPRESSION selects, in a guest, with proxies and backends that talk over its RDMA
# device. Limits are stretched: the processors are emulated.
set -euo pipefail
build=$1 expression=$2; shift 2
# By a name, as operators do; the guest's root is the host's, read-only.
hosts=$(mktemp)
printf '127.0.0.1 localhost\n%s backend.test\n' "$EGRET_GUEST_ADDRESS" >"$hosts"
mount --bind "$hosts" /etc/hosts
cd "$(dirname "$(realpath "$0")")/../../conformance"
export SUT=egret EGRET_BUILD=$build EGRET_RDMA_ADDRESS=backend.test EGRET_SLACK=${EGRET_SLACK:-8} PYTHONDONTWRITEBYTECODE=1
# So is the time that an op may take: the oracle's comparison is of answers, not of how fast a slow host emulates 300 clients.
export EGRET_PROXY_OPTIONS="op_timeout=$((2 * EGRET_SLACK))s ${EGRET_PROXY_OPTIONS:-}"
export EGRET_WORK=$build/tests/conformance HOME=/root
exec /usr/bin/python3 -m pytest -q --tb=short --durations=8 -p no:cacheprovider -k "$expression" $(printf "test_%s.py " "$@")
