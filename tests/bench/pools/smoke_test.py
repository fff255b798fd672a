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


quick = ["--keys", "600", "--rate", "600", "--times", "1", "--before", "0.5", "--after", "3.5", "--away", "1", "--back", "2"]
results = {result["name"]: result for result in json.loads(run(*quick, "--only", "Egret", "--json"))}

cold = {step["step"]: step for step in results["Egret, cold"]["changes"]}
assert cold["before"]["misses"] == cold["before"]["failed"] == cold["before"]["stale"] == 0, cold
assert 0 < cold["10 to 11"]["keys_missed"] < 200 and cold["10 to 11"]["failed"] == 0, cold  # a change refuses nobody
assert all(step["requests"] > 50 for step in cold.values()), cold

alone = {step["step"]: step for step in results["Egret, failover none"]["faults"]}
assert alone["before"]["failed"] == alone["before"]["misses"] == 0, alone
assert alone["kill -9"]["failed"] > 0 and alone["kill -9"]["stale"] == 0, alone  # nobody else serves its keys
assert alone["return from kill -9"]["misses"] > 0 and alone["return from kill -9"]["stale"] == 0, alone  # it is empty
assert alone["SIGSTOP"]["failed"] > 0 and alone["return from SIGSTOP"]["stale"] == 0, alone

for name, result in results.items():  # what the build does not know is said
    assert bool(result["missing"]) != bool(result["changes"] or result["faults"]), (name, result)
print("ok")
