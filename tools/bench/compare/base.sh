#!/bin/sh
# base.sh [--quick] REF: builds the two daemons of another commit of this repository, and egret-memcached where that is one process
# (before, it started the daemons), and prints the folder they are in: build/base/COMMIT/bin, with the commit's conf/ and the list of
# these programs beside it. A commit that was built before is not built again. --quick: they are hardly optimised, for tests (build/base/COMMIT-quick/bin).
set -eu
suffix='' flags=''
if [ "$1" = --quick ]; then
  suffix=-quick flags='-O1 -w'
  shift
fi
cd "$(dirname "$0")/../../.."
commit=$(git rev-parse --verify --quiet "$1^{commit}") || { echo "base.sh: no commit is called $1" >&2; exit 1; }
base=$PWD/build/base/$commit$suffix
if [ ! -e "$base/programs" ]; then
  tree=$base/tree
  drop_tree() { git worktree remove --force "$tree" >/dev/null 2>&1 || rm -rf "$tree"; }
  trap drop_tree EXIT
  trap 'exit 1' INT TERM
  drop_tree
  mkdir -p "$base"
  git worktree add --force --detach "$tree" "$commit" >&2
  (cd "$tree" && cmake --preset release ${flags:+-DCMAKE_BUILD_TYPE=Quick "-DCMAKE_CXX_FLAGS=$flags"}) >&2
  programs='egret-backend egret-proxy'
  if [ -d "$tree/tools/memcached/oneprocess" ]; then programs="$programs egret-memcached"; fi
  cmake --build "$tree/build/release" --target $programs >&2
  rm -rf "$base/conf" "$base/new" "$base/bin"
  cp -r "$tree/conf" "$base/conf"
  mkdir "$base/new"
  for program in $programs; do cp $(find "$tree/build/release" -type f -name $program -perm -u+x) "$base/new"; done
  mv "$base/new" "$base/bin"
  echo "$programs" >"$base/programs"
fi
echo "$base/bin"
