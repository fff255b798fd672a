#!/bin/bash
# build.sh: builds the daemons of the release before this one from the repository's history (minutes, once). build/base/0.1.0 then leads to
# the folder that they and their conf/ are in. Status 77, "skipped": there is no history here, as in a source archive.
set -euo pipefail
cd "$(dirname "$(realpath "$0")")/../.."
commit=ed2b790ebcd2c2c8074fb5666f5202c2cb35bfe8  # the last one of 0.1.0
if ! git cat-file -e "$commit^{commit}" 2>/dev/null; then
  echo "skipped: this is no checkout with the history of 0.1.0 ($commit)"
  exit 77
fi
bin=$(CMAKE_BUILD_PARALLEL_LEVEL=${CMAKE_BUILD_PARALLEL_LEVEL:-2} tools/bench/compare/base.sh --quick "$commit")
ln -sfn "$(basename "$(dirname "$bin")")" build/base/0.1.0
