#!/usr/bin/env python3
"""smoke_test.py MEASURE BUILD-DIRECTORY: tools/bench/pools measures real processes. Its counts are those that the situations must give, whatever
the machine: no time is looked at."""
import json
import subprocess
import sys

measure, build = sys.argv[1:]


def run(*arguments):
    done = subprocess.run([sys.executable, measure, build, *arguments], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    return done.stdout


def measured(name):
    quick = ["--keys", "600", "--rate", "600", "--times", "1", "--before", "0.5", "--after", "3", "--away", "1", "--back", "1.5"]
    (result,) = json.loads(run(*quick, "--only", name, "--json"))
    assert bool(result["missing"]) != bool(result["changes"] or result["faults"]), result  # what the build does not know is said
    return result["missing"], {step["step"]: step for step in result["changes"] + result["faults"]}


missing, cold = measured("Egret, cold")
assert not missing and all(step["requests"] > 50 for step in cold.values()), cold
assert cold["before"]["misses"] == cold["before"]["failed"] == cold["before"]["stale"] == 0, cold
assert 0 < cold["10 to 11"]["keys_missed"] < 200 and cold["10 to 11"]["failed"] == 0, cold  # a change refuses nobody

missing, alone = measured("Egret, failover none")
assert not missing and alone["before"]["failed"] == alone["before"]["misses"] == 0, alone
assert alone["kill -9"]["failed"] > 0 and alone["kill -9"]["stale"] == 0, alone  # nobody else serves its keys
assert alone["return from kill -9"]["misses"] > 0 and alone["return from kill -9"]["stale"] == 0, alone  # it is empty
assert alone["SIGSTOP"]["failed"] > 0 and alone["return from SIGSTOP"]["stale"] == 0, alone
print("ok")
