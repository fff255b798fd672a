#!/bin/bash
# expect_caught.sh MUTANT TEST CASE...: succeeds when the named test case runs and fails, with a seed that replays it.
set -u
mutant=$1
shift
name="$*"
# A comma parts filters of doctest; a star matches it as anything else. The first check that fails is enough.
output=$(timeout 60 "$mutant" --abort-after=1 --test-case="${name//,/\*}" 2>&1)
status=$?
if ((status == 124)); then
  echo "NOT CAUGHT: no end within 60 s"
elif ((status != 0)) && grep -m 1 -E "ERROR: |check failed|EGRET_SIM_SEED=" <<<"$output"; then
  exit 0
else
  echo "NOT CAUGHT: \"$name\" ended with status $status"
fi
tail -n 12 <<<"$output"
exit 1
