#!/usr/bin/env python3
"""What a change of members, and a member that dies or hangs, cost the clients of a pool: Egret, and twemproxy with auto_eject_hosts
beside it, in one run. Prints Markdown, or with --json what was counted. See README.md.

    measure.py BUILD-DIRECTORY [--times 3] [--json]
"""

import argparse
import collections
import dataclasses
import json
import pathlib
import shutil
import subprocess
import sys
import time

import report
from load import Load
from servers import EgretPool, TwemproxyPool

MEMBERS = 10


@dataclasses.dataclass
class Contender:
    """A pool with its options. `missing`: why it cannot be measured."""
    name: str
    start: object
    changes: bool  # is measured while members are added and removed
    faults: bool   # ... while members die and hang
    missing: str = ""


def contenders(options):
    def knows(option):
        shown = subprocess.run([f"{options.build}/egret-proxy", "--help"], capture_output=True, text=True, check=True).stdout
        return f" {option}" in shown

    def egret(name, changes, faults, needs=None, gutter=0, **settings):
        missing = f"this build has no option {needs}" if needs and not knows(needs) else ""
        return Contender(name, lambda: EgretPool(options.build, MEMBERS, options=settings, gutter=gutter), changes, faults, missing)

    cold = {"warm_for": "0s"} if knows("warm_for") else {}
    nutcracker = options.twemproxy or shutil.which("nutcracker")
    memcached = options.memcached or shutil.which("memcached")
    all_of_them = [
        egret("Egret, cold", True, False, **cold),
        egret("Egret, warm", True, False, "warm_for", warm_for=f"{max(1, int(options.after * 0.7))}s"),
        egret("Egret, failover none", False, True, **cold),
        egret("Egret, failover gutter", False, True, "gutter", gutter=2, failover="gutter"),
        Contender("twemproxy", lambda: TwemproxyPool(nutcracker, memcached, MEMBERS), True, True,
                  "" if nutcracker and memcached else "nutcracker or memcached is not installed"),
    ]
    return [one for one in all_of_them if not options.only or options.only in one.name]


def count(events, begin, until):
    """What happened to the requests that were answered within that time."""
    kinds = collections.Counter(event.kind for event in events)
    failed = [event.done for event in events if event.kind == "failed"]
    seconds = collections.defaultdict(collections.Counter)
    for event in events:
        seconds[int(event.done - begin)][event.kind] += 1
    gets = lambda some: some["hit"] + some["miss"] + some["stale"]
    return {
        "requests": len(events), "gets": gets(kinds), "misses": kinds["miss"], "stale": kinds["stale"], "failed": kinds["failed"],
        "keys_missed": len({event.key for event in events if event.kind == "miss"}),
        "stale_keys": len({event.key for event in events if event.kind == "stale"}),
        "worst_second_percent": max((100 * each["miss"] / gets(each) for each in seconds.values() if gets(each)), default=0),
        "last_failed_ms": 1000 * (max(failed) - begin) if failed else None,
        "fails_all_the_while": len({int(10 * (done - begin)) for done in failed}) > 6 * (until - begin),  # in most tenths of a second
        "longest_ms": 1000 * max((event.done - event.sent for event in events), default=0),
    }


class Run:
    """One pool under load, step by step."""

    def __init__(self, pool, load):
        self.pool, self.load, self.steps = pool, load, []

    def step(self, name, seconds, act=lambda: None):
        """Does something, and counts what happens in the seconds that follow."""
        begin = time.monotonic()
        act()
        time.sleep(max(0, begin + seconds - time.monotonic()))
        until = time.monotonic()
        self.steps.append({"step": name, **count(self.load.events(begin, until), begin, until)})


def changes(run, options):
    run.step("before", options.before)
    run.step("10 to 11", options.after, lambda: run.pool.set_members(range(MEMBERS + 1)))
    run.step("11 to 10", options.after, lambda: run.pool.set_members(range(MEMBERS)))


def faults(run, options):
    run.step("before", options.before)
    for _ in range(options.times):
        run.step("kill -9", options.away, lambda: run.pool.kill(0))
        run.step("return from kill -9", options.back, lambda: run.pool.start_member(0))
    for _ in range(options.times):
        run.step("SIGSTOP", options.away + 1, lambda: run.pool.halt(0))
        run.step("return from SIGSTOP", options.back + 2, lambda: run.pool.resume(0))


def measure(contender, options):
    found = {"name": contender.name, "missing": contender.missing, "changes": [], "faults": []}
    for wanted, what, into in ((contender.changes, changes, "changes"), (contender.faults, faults, "faults")):
        if not wanted or contender.missing:
            continue
        print(f"{contender.name}: {into}", file=sys.stderr)
        pool = contender.start()
        try:
            with Load(pool, options.keys, options.clients, options.rate, options.writes) as load:
                run = Run(pool, load)
                what(run, options)
            found[into] = run.steps
        finally:
            pool.stop()
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", help="the directory with egret-proxy and egret-backend")
    parser.add_argument("--twemproxy", default="", help="its nutcracker, else the one in PATH")
    parser.add_argument("--memcached", default="", help="twemproxy's servers, else the one in PATH")
    parser.add_argument("--only", default="", help="contenders whose name contains this")
    parser.add_argument("--keys", type=int, default=5000)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--rate", type=float, default=2000, help="requests a second of all clients")
    parser.add_argument("--writes", type=float, default=0.1, help="share of requests that set a new version")
    parser.add_argument("--times", type=int, default=3, help="how often a member is killed, and halted")
    parser.add_argument("--before", type=float, default=2, help="seconds of load before")
    parser.add_argument("--after", type=float, default=12, help="seconds after a change of members")
    parser.add_argument("--away", type=float, default=2.5, help="seconds that a member is away")
    parser.add_argument("--back", type=float, default=2.5, help="seconds after its return")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--write", type=pathlib.Path, help="a page with marks, between which the tables are put")
    options = parser.parse_args()
    results = [measure(contender, options) for contender in contenders(options)]
    text = report.markdown(results, options)
    print(json.dumps(results, indent=1) if options.json else text)
    if options.write:
        report.write(options.write, text)


if __name__ == "__main__":
    main()
