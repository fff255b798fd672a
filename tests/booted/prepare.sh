#!/bin/bash
# prepare.sh BUILD: what guests need, in BUILD/booted: the packages as `make deb` makes them (packages/first), their successors of a
# higher version (packages/next), the disk. Removed first, so that no test goes on with what is left of an older build.
set -euo pipefail
here=$(dirname "$(realpath "$0")")
build=$(realpath "$1")
readonly next_version=99.0

folder=$build/booted
rm -rf "$folder/packages"
mkdir -p "$folder/packages.new/next"
trap 'rm -rf "$folder/packages.new"' EXIT
(cd "$build" && cpack -D CPACK_OUTPUT_FILE_PREFIX="$folder/packages.new/first" -B "$folder/cpack") >"$folder/cpack.log" 2>&1 ||
  { tail -n 20 "$folder/cpack.log" >&2; exit 1; }
"$here/../packaging/repacked.py" "$next_version" "$folder/packages.new/next" "$folder"/packages.new/first/*.deb
"$here/make_image.sh" "$folder" "$folder"/packages.new/first/*.deb
mv "$folder/packages.new" "$folder/packages"
