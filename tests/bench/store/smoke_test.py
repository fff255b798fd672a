#!/usr/bin/env python3
"""smoke_test.py STORE_BENCH: every mode of store-bench, with tiny numbers, prints its tables and agrees with itself. No times are judged."""
import json, re, subprocess, sys

BENCH = sys.argv[1]


def run(*options):
    return subprocess.run([BENCH, *options], capture_output=True, text=True, timeout=100)


def tables(*options):
    done = run(*options, "--json")
    assert done.returncode == 0, (options, done.stderr)
    return {table["name"]: table for table in json.loads(done.stdout)}


def rows(table):
    first = {row[next(iter(row))]: row for row in table["rows"]}
    assert len(first) == len(table["rows"]), "two rows of one name"
    return first


def huge_mib(table, whose):
    note = next(note for note in table["notes"] if note.startswith(whose))
    return int(re.search(r"(\d+) MiB of them in 2 MiB pages", note)[1])


def speed():
    tiny = ("--items", "30000", "--rounds", "1", "--seconds", "0.001", "--peer-items", "1000")
    found = tables(*tiny, "--huge", "off")
    assert set(found) == {"speed", "speed, 1 KiB", "peer"}, set(found)
    names = rows(found["speed"])
    for batch in (1, 2, 4, 8, 16, 32, 64):
        for share in (95, 100):
            assert f"{share} % get, batch of {batch}" in names, names.keys()
    for row in (row for table in found.values() for row in table["rows"]):
        assert row["ns/op"] > 0 and row["least"] <= row["ns/op"] <= row["greatest"], row
    assert names["raw2, batch of 32"]["speed, % of raw2"] == "100"
    for whose in ("The store:", "raw2:"):
        assert huge_mib(found["speed"], whose) == 0, found["speed"]["notes"]
    too_small = run("--items", "100000", "--memory", "4")
    assert too_small.returncode == 1 and "4 MiB hold only" in too_small.stderr, too_small


def model():
    replay = ("--model", "--keys", "40000", "--requests-per-second", "500")
    found = rows(tables(*replay)["model"])
    assert len(found) == 7, found.keys()
    for column in ("this store", "ideal memcached now"):
        ratios = {name: row[column] for name, row in found.items()}
        assert all(0 < ratio < 1 for ratio in ratios.values()), ratios
        assert ratios["lognormal 200 B, no TTL, 30 %"] < ratios["lognormal 200 B, no TTL, 10 %"], ratios
        assert ratios["lognormal 200 B, no TTL, 30 %"] < ratios["lognormal 200 B, TTL 20 s-1 h, 30 %"], ratios
    assert len(rows(tables(*replay, "--only", "30 %")["model"])) == 3
    again = rows(tables(*replay, "--only", "TTL 20 s-1 h, 30 %")["model"])
    assert all(found[name] == row for name, row in again.items()), "the same seed, and another result"


def steps():
    found = rows(tables("--steps", "--steps-memory", "16", "--steps-seconds", "0.3")["steps"])
    for name in ("begin_pass", "get", "set", "delete", "part of 4 KiB", "commit 1 MiB", "chunk of 4 KiB", "all of them"):
        row = found[name]
        assert row["count"] > 0 and row["p50"] <= row["p99"] <= row["p99.99"] <= row["max"] * 1.01, row
    assert found["all of them"]["count"] == sum(row["count"] for name, row in found.items()
                                                if name != "all of them" and not name.startswith("control"))


for mode in (speed, model, steps):
    mode()
assert run("--seconds", "0").returncode != 0, "an option out of its range"
print("store-bench: three modes as they should be")
