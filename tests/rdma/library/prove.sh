#!/bin/bash
# prove.sh BUILD [all]: libegret over the guest's RDMA device, straight and through a proxy. Without `all`: what is of a device alone, and
# each way by which a proxy tells of it; with it, all that tests/client says of the library on one host and over TCP.
set -uo pipefail
build=$1 which=${2:-}
export EGRET_TEST_NETWORK=rdma:$EGRET_GUEST_ADDRESS
status=0

prove() { # prove COMMAND...
  echo "=== $(basename "$1")"
  "$@" || status=1
}

prove "$build/client_rdma_test"
if [[ $which != all ]]; then
  prove "$build/client_proxy_test" -tc='a backend over a network*,ops go where*'
else
  prove "$build/client_proxy_test"
  prove "$build/client_disturbed_test"
  # What children get over a device is in client_rdma_test; what a child and a session hold of memory and sockets is of shared memory,
  # and so is an op_timeout of 20 ms.
  EGRET_TEST_HOST=$EGRET_TEST_NETWORK prove "$build/client_backend_test" \
    -tce='200 forked children*,a forked child has neither*,a parent?s death*,a program that closes*,a session takes little memory*,acknowledged increments*'
fi
exit $status
