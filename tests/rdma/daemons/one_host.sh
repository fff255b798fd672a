#!/bin/bash
# one_host.sh BUILD [PYTEST ARGUMENT...]: the unmodified daemons and real clients in one guest, over its RDMA device; then a part of tests/conformance
# with one session for all workers (sessions: host).
set -euo pipefail
build=$1; shift
here=$(dirname "$(realpath "$0")")
cd "$here"
export SUT=egret EGRET_BUILD=$build EGRET_RDMA_ADDRESS=$EGRET_GUEST_ADDRESS EGRET_SLACK=${EGRET_SLACK:-4} PYTHONDONTWRITEBYTECODE=1
export PYTHONPATH=$here/../../conformance HOME=/root
pytest=(/usr/bin/python3 -m pytest -q --tb=short --durations=8 -p no:cacheprovider)
"${pytest[@]}" test_life.py test_verbs_fail.py test_names.py test_by_host.py "$@"
(($# == 0)) || exit 0
cd ../../conformance
EGRET_PROXY_OPTIONS="sessions=host workers=3 op_timeout=16s" EGRET_SLACK=8 exec "${pytest[@]}" -k "test_cas or pipelines_of_every_command or one_mebibyte" test_cas.py test_pipelines.py test_sizes.py
