# Sourced by the scripts in this folder: names that several of them share. No side effects.
# shellcheck shell=bash

readonly EXIT_SKIPPED=77 # ctest's SKIP_RETURN_CODE: this machine cannot run guests; the reason is on stderr
readonly EXIT_TIMEOUT=124
readonly EXIT_NO_STATUS=125 # a guest ended without saying how its command did

# Where the kernel and the initramfs are kept between runs.
guest_cache() {
  echo "${EGRET_GUEST_CACHE:-${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/egret-guest}"
}

# skip REASON: ends the script; a test that ends so is reported as skipped, never as passed.
skip() {
  echo "skipped: $*" >&2
  exit "$EXIT_SKIPPED"
}

need_command() { # need_command NAME PACKAGE
  command -v "$1" >/dev/null || skip "no $1 here (apt-get install $2)"
}
