#!/bin/bash
# install.sh FILE...: installs what is missing of the Debian packages that the FILEs list, one a line. Silent when all are there.
set -euo pipefail
missing=()
for package in $(cat "$@"); do
  case $package in
    # Another build of Node (with npm) does as well as Debian's.
    nodejs) command -v node >/dev/null && command -v npm >/dev/null || missing+=(nodejs npm) ;;
    *) dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package") ;;
  esac
done
((${#missing[@]})) || exit 0
sudo=()
if ((EUID != 0)); then
  command -v sudo >/dev/null || { echo "install.sh: as root, or with sudo installed: missing ${missing[*]}" >&2; exit 1; }
  sudo=(sudo)
fi
echo "installing: ${missing[*]}"
log=$(mktemp); trap 'rm -f "$log"' EXIT
install() { "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${missing[@]}" >"$log" 2>&1; }
# The lists may be missing or old: fetch them, and once more if that was a passing fault.
for try in 1 2 3; do
  "${sudo[@]}" apt-get update >"$log" 2>&1 && install && exit 0
  sleep $((5 * try))
done
cat "$log" >&2
exit 1
