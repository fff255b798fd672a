#!/bin/bash
# make_image.sh FOLDER DEB...: makes sure that FOLDER/root.ext4 is the disk of a Debian 12 host with systemd, and the packages that
# the DEBs depend on in /srv/debian, from where apt installs them: a guest has no network. It is made once, about half a minute,
# and again when something that it is made of changes. Ends with 77 (skipped) when this machine cannot make it.
set -euo pipefail
here=$(dirname "$(realpath "$0")")
source "$here/../rdma/guest/common.sh"
readonly packages=systemd,systemd-sysv,udev,dbus,kmod,iproute2,rdma-core,ibverbs-providers,ibverbs-utils,procps,man-db,bash-completion,python3,python3-pymemcache
readonly disk_size=1500M
readonly seconds=900

folder=$(realpath -m "$1")
shift
need_command mmdebstrap mmdebstrap
need_command mke2fs e2fsprogs
need_command dpkg-scanpackages dpkg-dev
((EUID == 0)) || skip "only root can make a disk with root's files"

wanted=$(for deb in "$@"; do dpkg-deb -f "$deb" Depends Recommends; done)
recipe=$({ cat "$0" "$here"/image/*; echo "$wanted"; } | sha256sum | cut -c 1-12)
[[ -e $folder/root.ext4 && $(cat "$folder/recipe" 2>/dev/null) == "$recipe" ]] && exit

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work" # for apt's user
# Where the host's own packages come from; else Debian's default.
"$here/../packages/mirrors.sh" >"$work/sources.list"
[[ -s $work/sources.list ]] && mirrors=("$work/sources.list") || mirrors=()

mkdir "$work/debs" "$work/root"
cp "$@" "$work/debs/"
timeout "$seconds" mmdebstrap --quiet --variant=minbase --include="$packages" \
  --customize-hook="copy-in $work/debs /srv" \
  --customize-hook='chroot "$1" sh -c "apt-get install -qq --download-only /srv/debs/*.deb && rm -r /srv/debs"' \
  --customize-hook='mkdir "$1/srv/debian" && mv "$1"/var/cache/apt/archives/*.deb "$1/srv/debian/"' \
  --customize-hook='cd "$1/srv/debian" && dpkg-scanpackages . >Packages 2>/dev/null' \
  bookworm "$work/root.tar" "${mirrors[@]}" >"$work/log" 2>&1 || { tail -n 20 "$work/log" >&2; skip "cannot make a Debian (above)"; }
tar -C "$work/root" -xf "$work/root.tar" --exclude='./dev/*'

rm -f "$work"/root/etc/apt/sources.list "$work"/root/etc/apt/sources.list.d/*
cat >"$work/root/etc/apt/sources.list" <<SOURCES
deb [trusted=yes] file:/srv/debian ./
deb [trusted=yes] file:/share/packages ./
SOURCES
cp "$here"/image/* "$work/root/etc/systemd/system/"
systemctl --root="$work/root" enable share.mount guest-agent.service >/dev/null 2>&1
mkdir -p "$folder"
rm -f "$folder/recipe"
mke2fs -q -F -t ext4 -d "$work/root" "$folder/root.ext4" "$disk_size"
echo "$recipe" >"$folder/recipe"
