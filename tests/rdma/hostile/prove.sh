#!/bin/bash
# prove.sh BUILD: in one guest; the hostile client, and a look at what the backend registers.
set -euo pipefail
build=$1; shift
here=$(dirname "$(realpath "$0")")
cd "$here"
export SUT=egret EGRET_BUILD=$build EGRET_RDMA_ADDRESS=$EGRET_GUEST_ADDRESS EGRET_SLACK=${EGRET_SLACK:-4} PYTHONDONTWRITEBYTECODE=1
ip addr add 10.9.0.66/24 dev dummy0  # an attacker that is another peer
export PYTHONPATH=$here/../../conformance:$here/../interposer HOME=/root
exec /usr/bin/python3 -m pytest -q --tb=short --durations=6 -p no:cacheprovider test_hostile.py test_before_proof.py test_registered.py "$@"
