#!/bin/bash
# build.sh TARGET...: compiles these in build/optimised, by how often the training's loads ran their code. It takes twice as long as
# a release, and a minute more for each program to link. What an earlier run has counted is not used again.
# build/optimised/is_complete is there only while these programs are.
set -euo pipefail
(($# > 0)) || { echo "usage: build.sh TARGET..." >&2; exit 2; }
cd "$(dirname "$(realpath "$0")")/../../.."
build=build/optimised
rm -f $build/is_complete

echo "--- 1 of 3: programs that count what runs"
cmake --preset optimised -DEGRET_PROFILE=gather >/dev/null
cmake --build $build --target egret-backend egret-proxy egret-memcached egret-bench
find $build -name '*.gcda' -delete

echo "--- 2 of 3: the training's loads, about a minute"
conf/packaging/optimised/train.sh $build

echo "--- 3 of 3: programs compiled by these counts"
cmake --preset optimised >/dev/null
cmake --build $build --target "$@"
touch $build/is_complete
