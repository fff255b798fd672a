#!/bin/bash
# fetch_kernel.sh DIR: unpacks (does not install) Debian's generic kernel into DIR, which must not exist yet.
# The generic kernel carries Soft-RoCE (rdma_rxe) and 9p as modules; the cloud kernel has neither. About 70 MB.
set -euo pipefail
source "$(dirname "$(realpath "$0")")/common.sh"
readonly download_seconds=300

dir=$(realpath -m "$1")
need_command apt-get apt
need_command dpkg-deb dpkg
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# linux-image-amd64 is empty and depends on the current version, signed or not; apt prefers the signed one.
package=$(apt-cache depends linux-image-amd64 2>/dev/null |
  sed -n 's/.*Depends: \(linux-image-[0-9][^ ]*\)$/\1/p' | sed 's/-unsigned$//' | head -n 1)
[[ -n $package ]] || skip "apt knows no linux-image-amd64 (apt-get update; amd64 Debian only)"

# apt's sandbox user must be able to write here.
chmod 755 "$work"
cd "$work"
timeout "$download_seconds" apt-get download "$package" >apt.log 2>&1 ||
  { tail -n 3 apt.log >&2; skip "cannot download $package"; }
mkdir -p "$(dirname "$dir")"
dpkg-deb -x ./*.deb "$work/unpacked"
mv "$work/unpacked" "$dir.part.$$"
mv -T "$dir.part.$$" "$dir"
echo "fetch_kernel: $package is in $dir" >&2
