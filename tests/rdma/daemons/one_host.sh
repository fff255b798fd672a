#!/bin/bash
# one_host.sh BUILD [PYTEST ARGUMENT...]: the unmodified daemons and real clients in one guest, over its RDMA device.
set -euo pipefail
build=$1; shift
here=$(dirname "$(realpath "$0")")
cd "$here"
export SUT=egret EGRET_BUILD=$build EGRET_RDMA_ADDRESS=$EGRET_GUEST_ADDRESS EGRET_SLACK=${EGRET_SLACK:-4} PYTHONDONTWRITEBYTECODE=1
export PYTHONPATH=$here/../../conformance HOME=/root
exec /usr/bin/python3 -m pytest -q --tb=short --durations=8 -p no:cacheprovider test_life.py test_verbs_fail.py test_names.py "$@"
