#!/bin/bash
# Whether a daemon in this container is well: healthcheck.sh proxy|ready|backend
#
#   proxy [HOST [PORT]]   every thread of it goes on (its backends may be down); with a client's address: it answers there
#   ready [HOST [PORT]]   ... and a backend is up; with a client's address: it reaches the backend of a key
#   backend [SOCKET]      every thread of it goes on; with its shm socket: it listens there, which is looked up
#
# Threads are asked for at the admin address: $EGRET_ADMIN, HOST:PORT, where `admin` is not the default.
set -euo pipefail

# The first line of what is answered to a request.
ask() {
  local answer
  exec 3<>"/dev/tcp/$1/$2"
  printf '%s' "$3" >&3
  IFS= read -r -t 3 answer <&3
  printf '%s' "${answer%$'\r'}"
}

# Whether the admin address answers that path with 200.
is_well() {
  local admin=${EGRET_ADMIN:-127.0.0.1:$2}
  [[ $(ask "${admin%:*}" "${admin##*:}" $'GET '"$1"$' HTTP/1.0\r\n\r\n') == "HTTP/1."*" 200 "* ]]
}

case ${1:?proxy, ready or backend}:$# in
  proxy:1) is_well /healthz 11280 ;;
  ready:1) is_well /readyz 11280 ;;
  backend:1) is_well /healthz 11281 ;;
  proxy:*) [[ $(ask "$2" "${3:-11211}" $'version\r\nquit\r\n') == VERSION* ]] ;;
  ready:*) [[ $(ask "$2" "${3:-11211}" $'get egret-healthcheck\r\nquit\r\n') =~ ^(END|VALUE) ]] ;;
  backend:*) grep -q " $2\$" /proc/net/unix ;;
  *) echo "healthcheck.sh: proxy, ready or backend" >&2; exit 1 ;;
esac
