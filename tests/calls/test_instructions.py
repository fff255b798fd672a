"""Instructions of a get in one process, counted by valgrind: what its threads execute meanwhile, without the kernel's part.

`python3 test_instructions.py` prints the table of docs/benchmarks/one-process.md.
"""

import re
import subprocess

import pytest

import profiled

# What a client sends at once, how often, and the most instructions that a get of it may take: 4 to 9 % above what was
# counted, since another compiler or libc takes a few more or less.
ROWS = {"one get": (1, profiled.get, 2000, 5300), "16 gets": (16, profiled.get, 500, 2420), "a multiget of 50": (50, profiled.multiget, 200, 2100)}
EXECUTING, ANSWERING, REST = "executing", "results to answers", "parsing, and the pass"
# The functions that the parts are. Of several gets, results are handed out within execute_all().
ANSWERS = "Reply::on_result("
EXECUTES = {1: "DirectLane::execute(", 2: "DirectLane::execute_all("}
PAGES = 40  # the most, of code, that a lone get may run through: without conf/packaging/order it was 84


def count(depth, form, rounds):
    """{part: instructions of a get}, "all" among them."""
    with profiled.Profiled() as server:
        [profile] = server.profiles(lambda turn: server.ask(*form(server.keys(turn, depth))), rounds)
        table = subprocess.run(["callgrind_annotate", "--inclusive=yes", "--threshold=100", profile], capture_output=True, text=True, check=True).stdout
    rows = [(int(count.replace(",", "")), name) for count, name in re.findall(r"^ *([\d,]+) \([ \d.]+%\) +(.*)$", table, re.M)]
    inclusive = lambda function: max((count for count, name in rows if function in name), default=0)
    answering, executing = inclusive(ANSWERS), inclusive(EXECUTES[min(depth, 2)])
    if depth > 1:
        executing -= answering
    whole = next(count for count, name in rows if "PROGRAM TOTALS" in name)
    counts = {REST: whole - executing - answering, EXECUTING: executing, ANSWERING: answering, "all": whole}
    return {part: count / rounds / depth for part, count in counts.items()}


def count_pages(gets=500):
    with profiled.Profiled(["--dump-instr=yes"]) as server:
        [profile] = server.profiles(lambda turn: server.ask(*profiled.get(server.keys(turn, 1))), gets)
        return profiled.code_pages(profile, gets / 2)


@pytest.mark.parametrize("row", ROWS)
def test_a_get_takes_no_more_instructions_than_it_did(row):
    depth, form, rounds, most = ROWS[row]
    found = count(depth, form, rounds)
    assert all(part > 0 for part in found.values()), f"a part has another name now: {found}"
    assert found["all"] <= most, f"{row}: {found}"


def test_what_a_lone_get_runs_lies_together():
    assert count_pages() <= PAGES


if __name__ == "__main__":
    names = [REST, EXECUTING, ANSWERING, "all"]
    print("| sent at once | " + " | ".join(names) + " |\n| --- " + "| ---: " * len(names) + "|")
    for name, (depth, form, rounds, _) in ROWS.items():
        found = count(depth, form, rounds)
        print(f"| {name} | " + " | ".join(f"{found[part]:,.0f}" for part in names) + " |")
    print(f"\nPages of 4 KiB of code that a lone get runs through, libraries included: {count_pages()}.")
