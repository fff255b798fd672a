#!/bin/bash
# Whether a daemon in this container is well: healthcheck.sh proxy|ready|backend
#
#   proxy [HOST [PORT]]   answers a client (its backends may be down)
#   ready [HOST [PORT]]   and reaches the backend of a key
#   backend [SOCKET]      listens on its shm socket, which is looked up, not connected to
set -euo pipefail

# The first line of what is answered to a request line.
ask() {
  local answer
  exec 3<>"/dev/tcp/$1/$2"
  printf '%s\r\nquit\r\n' "$3" >&3
  IFS= read -r -t 3 answer <&3
  printf '%s' "${answer%$'\r'}"
}

case ${1:?proxy, ready or backend} in
  proxy) [[ $(ask "${2:-127.0.0.1}" "${3:-11211}" version) == VERSION* ]] ;;
  ready) [[ $(ask "${2:-127.0.0.1}" "${3:-11211}" "get egret-healthcheck") =~ ^(END|VALUE) ]] ;;
  backend) grep -q " ${2:-/run/egret/backend.sock}\$" /proc/net/unix ;;
  *) echo "healthcheck.sh: proxy, ready or backend" >&2; exit 1 ;;
esac
