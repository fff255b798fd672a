#!/bin/bash
# make_initramfs.sh KERNEL_DIR VERSION OUT ROOT: busybox, initramfs_ROOT.sh as /init, and the modules a guest needs, in the
# order in which they must be loaded (/modules/order). ROOT is what the guest's root is: host or disk.
set -euo pipefail
here=$(dirname "$(realpath "$0")")
kernel=$(realpath "$1")
version=$2
out=$(realpath -m "$3")
root=$4
# crc32_generic and crc32c_generic: rdma_rxe and ext4 fail without them, and nothing names them.
modules=(virtio_pci virtio_net virtio_console virtio_rng crc32_generic 9pnet_virtio 9p dummy rdma_rxe rdma_ucm ib_uverbs)
case $root in
  host) modules+=(overlay) ;;
  disk) modules+=(virtio_blk crc32c_generic ext4 autofs4) ;;
esac

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work"/{bin,modules,proc,sys,dev}
cp "$(command -v busybox)" "$work/bin/busybox"
install -m 755 "$here/initramfs_$root.sh" "$work/init"

[[ -e $kernel/lib/modules/$version/modules.dep ]] || depmod -b "$kernel" "$version"
for module in "${modules[@]}"; do
  modprobe -d "$kernel" -S "$version" --show-depends "$module"
done | awk '$1 == "insmod" && !seen[$2]++ { print $2 }' >"$work/load_order"
while read -r file; do
  name=$(basename "$file")
  case $name in
    *.xz) name=${name%.xz}; xz -dc "$file" >"$work/modules/$name" ;;
    *.zst) name=${name%.zst}; zstd -qdc "$file" >"$work/modules/$name" ;;
    *) cp "$file" "$work/modules/$name" ;;
  esac
  echo "$name" >>"$work/modules/order"
done <"$work/load_order"
rm "$work/load_order"

(cd "$work" && find . | busybox cpio -o -H newc 2>/dev/null) >"$out.part.$$"
mv "$out.part.$$" "$out"
