#!/bin/bash
# prepare.sh [host|disk]: makes sure that the cache holds a kernel and an initramfs for guests whose root is the host's (or a
# disk of their own), and prints their two paths, a line each.
# Several may run at once. Ends with 77 (skipped) when this machine cannot run guests, saying why.
set -euo pipefail
here=$(dirname "$(realpath "$0")")
source "$here/common.sh"
readonly lock_seconds=400
root=${1:-host}

[[ $(uname -m) == x86_64 ]] || skip "guests are x86-64 and this machine is not"
need_command qemu-system-x86_64 qemu-system-x86
need_command busybox busybox-static
need_command depmod kmod
need_command python3 python3
need_command rdma iproute2
qemu-system-x86_64 --version >/dev/null 2>&1 || skip "qemu-system-x86_64 does not start"

cache=$(guest_cache)
mkdir -p "$cache" 2>/dev/null || skip "cannot write $cache (set EGRET_GUEST_CACHE)"
exec {lock}>"$cache/lock"
flock -w "$lock_seconds" "$lock" || skip "another run has held $cache/lock for $lock_seconds s"

kernel=$cache/kernel
[[ -d $kernel ]] || "$here/fetch_kernel.sh" "$kernel" || exit
version=$(ls "$kernel/lib/modules")
vmlinux=$cache/vmlinux-$version
[[ -e $vmlinux ]] || python3 "$here/extract_vmlinux.py" "$kernel/boot/vmlinuz-$version" "$vmlinux"

# Named by what it is made from, so that an edited script is never run with an old image.
recipe=$(cat "$here/make_initramfs.sh" "$here/initramfs_$root.sh" | sha256sum | cut -c 1-12)
initramfs=$cache/initramfs-$root-$version-$recipe.cpio
[[ -e $initramfs ]] || "$here/make_initramfs.sh" "$kernel" "$version" "$initramfs" "$root"
echo "$vmlinux"
echo "$initramfs"
