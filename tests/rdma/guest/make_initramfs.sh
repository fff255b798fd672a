#!/bin/bash
# make_initramfs.sh KERNEL_DIR VERSION OUT: busybox, initramfs_init.sh as /init, and the modules a guest needs, in the
# order in which they must be loaded (/modules/order). crc32_generic is there because rdma_rxe fails without it.
set -euo pipefail
here=$(dirname "$(realpath "$0")")
kernel=$(realpath "$1")
version=$2
out=$(realpath -m "$3")
readonly modules=(virtio_pci virtio_net virtio_console virtio_rng crc32_generic 9pnet_virtio 9p overlay
  dummy rdma_rxe rdma_ucm ib_uverbs)

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work"/{bin,modules,proc,sys,dev}
cp "$(command -v busybox)" "$work/bin/busybox"
install -m 755 "$here/initramfs_init.sh" "$work/init"

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
