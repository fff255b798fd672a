#!/bin/bash
# Installs what is missing of the packages named in the files given: install.sh build.txt test.txt ...
# Says nothing and needs no rights when nothing is missing.
set -euo pipefail

missing=()
while read -r package command _; do
  [[ -z $package || $package == \#* ]] && continue
  [[ -n $command ]] && command -v "$command" >/dev/null && continue
  [[ $(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null) == installed ]] || missing+=("$package")
done < <(cat "$@" | sed 's/\r$//; $a\')
((${#missing[@]})) || exit 0

as_root=()
if ((EUID != 0)); then
  command -v sudo >/dev/null || { echo "missing: ${missing[*]}; run this as root, or install sudo" >&2; exit 1; }
  as_root=(sudo)
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
run() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive "$@" </dev/null >>"$log" 2>&1
}
# A first try with the package lists at hand; they may be absent or old.
install() {
  run apt-get install -y -q --no-install-recommends "${missing[@]}"
}

echo "installing: ${missing[*]}"
# Debian starts a server when it is installed; the tests want these programs, not a server on their ports.
quiet=()
for server in memcached nutcracker php8.2-fpm prometheus; do
  [[ " ${missing[*]} " == *" $server "* && -d /run/systemd/system ]] && quiet+=("$server.service")
done
((${#quiet[@]} == 0)) || run systemctl mask --runtime "${quiet[@]}" || true
status=0
try_again() {
  local try
  for try in 1 2 3; do
    run apt-get update -q && install && return 0
    sleep $((5 * try))  # a mirror's passing fault
  done
  return 1
}
install || try_again || status=$?
if ((${#quiet[@]})); then
  run systemctl unmask --runtime "${quiet[@]}" || true
  run systemctl disable "${quiet[@]}" || true
fi
if ((status != 0)); then
  tail -n 20 "$log" >&2
  echo "could not install: ${missing[*]}" >&2
fi
exit "$status"
