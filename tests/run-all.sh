#!/bin/bash
# run-all.sh [--soak MINUTES]: builds the release, asan and tsan presets and runs their tests. The last line is the sum over all of
# them, `N passed, N failed[, N skipped]`; the status is not 0 if anything failed, to build included.
#   release  everything but most units, which asan has, and the slow variants that left_out names
#   asan     units but those, simulation, fuzzers, hostile peers
#   tsan     units that start threads, many clients (of two daemons, by one session of a host, and of one process), reloads
set -uo pipefail
cd "$(dirname "$(realpath "$0")")/.."
passed=0 failed=0 skipped=0 soak_minutes=
united=(-DEGRET_PRECOMPILE=ON -DEGRET_UNITE=ON)  # the soak builds a release as it is shipped
export CTEST_PARALLEL_LEVEL=${CTEST_PARALLEL_LEVEL:-2}
fuzz_seconds=3
without_asan='^(pool_ketama_oracle|pool_placement|rpc_fetch_model|store_space)_test$'  # they compute much, and are in release
left_out='^(accesses_of_an_op|bench_smoke|conformance_.*_long|lint_tidy_analyzer|more_mutants_build|mutation_(rpc|pool|store|paradigms|library)_.*|older_conformance|packaging_optimised_whole|rdma_conformance_(slow|dialects|fetch|reply|by_host)|rdma_encryption|rdma_losses|rdma_handshakes|rdma_interposer|rdma_library_long|rdma_omissions|rdma_older_long|rdma_bench_verbs|rdma_paradigms|rdma_paradigms_long|status_screenshots)$'  # the slow ones are for the soak
if [[ ${1-} == --soak ]]; then
  seconds=$((60 * ${2:-60}))
  fuzz_seconds=$((seconds / 10))
  soak_minutes=${2:-60}
  left_out='^bench_smoke$'
  without_asan='^$'
  united=()
  export EGRET_SOAK_SECONDS=${EGRET_SOAK_SECONDS:-$((seconds / 10))} EGRET_SIM_SEEDS=${EGRET_SIM_SEEDS:-$((seconds * 10))}
fi

# compile PRESET [TARGET]: configures and builds; says nothing, what the tools say is in build/PRESET.*.log.
compile() {
  local units=ON
  [[ $1 == release && -z $soak_minutes ]] && units=OFF
  cmake --preset "$1" "${united[@]}" -DEGRET_UNITS=$units -DEGRET_FUZZ_SECONDS="$fuzz_seconds" >"build/$1.configure.log" 2>&1 && cmake --build --preset "$1" ${2:+--target "$2"} >"build/$1.build.log" 2>&1
}

# build PRESET [TARGET]: compiles; a failure counts as a failed test.
build() {
  echo "=== $1: build"
  compile "$@" && return 0
  tail -n 60 "build/$1.configure.log" "build/$1.build.log" 2>/dev/null
  failed=$((failed + 1))
  return 1
}

# Release tests mostly wait. The sanitized presets are compiled meanwhile, by what CPU time is left: any test goes before
# them. `build` afterwards finds them made, or says what is wrong.
compile_meanwhile() {
  chrt -i -p 0 $BASHPID >/dev/null 2>&1 || renice -n 19 -p $BASHPID >/dev/null 2>&1
  compile asan sanitized && compile tsan sanitized
}

# check PRESET [ctest arguments]: runs tests and adds up what became of them.
check() {
  local preset=$1 xml; shift
  echo "=== $preset: tests $*"
  xml=$(mktemp)
  ctest --preset "$preset" --output-on-failure --output-junit "$xml" --no-tests=error "$@" || true
  read -r p f s < <(python3 - "$xml" <<'PY'
import sys, xml.etree.ElementTree as tree
try:
    suite = tree.parse(sys.argv[1]).getroot()
    total, bad, skipped = (int(suite.get(key, 0)) for key in ("tests", "failures", "skipped"))
    print(total - bad - skipped, bad, skipped) if total else print(0, 1, 0)
except Exception as error:
    print(0, 1, 0)
PY
)
  rm -f "$xml"
  passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
}

mkdir -p build
# All hostile cases at once, for that long.
soak() {
  echo "=== release: soak"
  if EGRET_BUILD=build/release PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 tests/soak/soak.py "$soak_minutes"; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
}

# bench_smoke finds itself free ports, which somebody else may take: it may try twice.
build release
built=$?
if [[ -z $soak_minutes ]]; then
  trap 'trap - TERM; kill 0' INT TERM  # what runs in the background does not hear of Ctrl-C
  compile_meanwhile &
fi
((built != 0)) || { check release -E "$left_out" && check release -R '^bench_smoke$' --repeat until-pass:2; }
wait
[[ -z $soak_minutes ]] || soak
if [[ -n $soak_minutes && -n ${LIBMEMCACHED_TESTS-} ]]; then
  echo "=== release: libmemcached's own tests"
  if tests/soak/libmemcached.py "$LIBMEMCACHED_TESTS" build/release; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
fi
if [[ -n $soak_minutes && -n ${MEMCACHED_TESTS-} ]]; then
  echo "=== release: memcached's own tests"
  if tests/soak/memcached.py "$MEMCACHED_TESTS" build/release; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
fi
build asan sanitized && check asan -L '^(unit|sim|fuzz|hostile)$' -E "$without_asan"
build tsan sanitized && check tsan -L '^unit$' && EGRET_SLACK=4 check tsan -R '^conformance_(many_clients|many_clients_by_host|many_clients_one_process|reload|reload_other_half|sessions_by_host)$'
echo "$passed passed, $failed failed, $skipped skipped" | tee build/test-totals.txt
((failed == 0 && passed > 0))
