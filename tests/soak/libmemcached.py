#!/usr/bin/env python3
"""libmemcached.py RUNTESTS BUILD: libmemcached's own tests against egret-memcached, over sockets and with the preload library.

RUNTESTS is the program of that name that upstream's build makes with -DBUILD_TESTING=ON (its README: Testing); nothing of it is here.
It starts the servers itself, as $MEMCACHED_BINARY. The yardstick is the memcached that $MEMCACHED names, else the installed one.

    each test case ─▶ memcached, the yardstick ─▶ its sections that passed ─┐
                  ├─▶ egret-memcached, over sockets  ───────────────────────┼─▶ all of these passed, too
                  └─▶ egret-memcached, the tests under egret-run ───────────┘   and slots were used

A section that fails with Egret is run again with both, and a later success does not excuse it: only a failure with memcached does. That the tests end without a
signal, such as that of a crash, is a section of its own. Sections that are not found, or not passed by memcached, cannot be missed: it must pass as many as are known.

Left out: what speaks UDP, which Egret refuses (its servers are started without); and memcapable's ascii test where the memcached here is older than 1.6.45,
whose answer to a delete with a time is Egret's (tests/conformance/test_real_clients.py). Exit status 1: Egret fails what memcached passes, memcached passes
too few sections for that to say anything, or too few ops went by slots.
"""

import collections
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as tree

RUNTESTS, BUILD = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
LEFT_OUT = re.compile("^(memcached_udp|bin/memslap)$")  # the latter's runs with --udp are in one section with all others
OVER_UDP = re.compile("udp=1|^bin/memcp($|/with server(/okay)?$)")  # and what holds such sections
OF_OLD_MEMCACHED = re.compile(r"^bin/memcapable($|/with server($|/ascii))")
SECONDS = 300  # of a case; a case that takes longer hangs
ENDS = " (ends without a signal)"
MEMCACHED = os.environ.get("MEMCACHED", "memcached")  # the yardstick
AGAIN = 3  # runs of a case that has failed, with memcached and with Egret
LEAST_SECTIONS = 424  # memcached 1.6.18 passes so many of libmemcached 1.1.4
LEAST_SLOT_OPS = 150_000  # of them 192,002 went by slots


def cases():
    said = subprocess.run([RUNTESTS, "--list-test-names-only"], capture_output=True, text=True, check=False, timeout=60).stdout
    found = [line.strip() for line in said.splitlines() if line.strip() and not LEFT_OUT.search(line)]
    if len(found) < 50:
        sys.exit(f"{RUNTESTS}: only {len(found)} test cases")
    return found


def sections(node, path):
    """(path, whether it passed) of each section and of the case itself. Numbers in names are random, some of them."""
    for section in node.findall("Section"):
        yield from sections(section, path + "/" + re.sub(r"\d{2,}", "N", section.get("name")))
    results = node.find("OverallResults")
    if results is not None:
        yield path, int(results.get("failures")) == 0
    result = node.find("OverallResult")
    if result is not None:
        yield path, result.get("success") == "true"


class Way:
    """A server, and how the tests are run against it."""

    def __init__(self, name, server, folder, is_preloaded=False):
        self.name, self.server, self.is_preloaded = name, server, is_preloaded
        self.log = folder / f"{name}.log"
        self.config = folder / "client.yaml"
        self.config.write_text("backend_uids: [65534]\n")  # the tests have servers run as nobody

    def run(self, case):
        """Sections that passed, and that failed, by path."""
        environment = {**os.environ, "MEMCACHED_BINARY": str(self.server), "EGRET_CONFIG": str(self.config), "EGRET_PRELOAD_LOG": str(self.log)}
        runner = [BUILD / "egret-run"] if self.is_preloaded else []
        try:
            done = subprocess.run([*runner, RUNTESTS, case.replace(",", r"\,"), "-r", "xml"], capture_output=True, timeout=SECONDS,
                                  cwd=RUNTESTS.parent, env=environment, check=False, errors="replace")
            root = tree.fromstring(done.stdout[done.stdout.index("<?xml"):])
        except (subprocess.TimeoutExpired, tree.ParseError, ValueError) as error:
            return set(), {f"{case} ({type(error).__name__})"}
        results = collections.defaultdict(lambda: True, {case + ENDS: done.returncode >= 0})
        for test in root.iter("TestCase"):
            for path, passed in sections(test, case):
                results[path] &= passed
        return {path for path, passed in results.items() if passed}, {path for path, passed in results.items() if not passed}

    def slots(self):
        text = self.log.read_text() if self.log.exists() else ""
        return sum(int(count) for count in re.findall(r"(\d+) ops by slots", text))


def wrapper(folder, server):
    """The servers are not to be preloaded with the tests, nor to listen at UDP: the same port over TCP follows."""
    path = folder / server.name
    path.write_text(f"""#!/bin/bash
unset LD_PRELOAD
words=()
while (($# > 0)); do
  if [[ $1 == -U ]]; then shift; else words+=("$1"); fi
  shift
done
exec {server} "${{words[@]}}"
""")
    path.chmod(0o755)
    return path


def is_counted(path, is_old):
    return not OVER_UDP.search(path) and not (is_old and OF_OLD_MEMCACHED.match(path))


def judge(case, yardstick, ways, is_old):
    """The sections that memcached passes, and those of them, with the way, that Egret fails although memcached never does, or each time."""
    expected, failing = yardstick.run(case)
    if failing:
        print(f"{case}: memcached fails {len(failing)} of {len(failing | expected)}")
        expected |= yardstick.run(case)[0]
    expected = {path for path in expected if is_counted(path, is_old)}
    unsteady, wrong = failing & expected, []  # what memcached has failed, too
    for way in ways:
        missing = expected - way.run(case)[0]
        always = set(missing)
        for _ in range(AGAIN if missing else 0):
            unsteady |= expected - yardstick.run(case)[0]
            passed = way.run(case)[0]
            missing |= expected - passed
            always -= passed
        wrong += [f"{way.name}: {path}" for path in sorted((missing - unsteady) | always)]
    return expected, wrong


def main():
    with tempfile.TemporaryDirectory(prefix="egret-libmemcached-") as name:
        folder = pathlib.Path(name)
        folder.chmod(0o755)
        egret = wrapper(folder, BUILD / "egret-memcached")
        yardstick = Way("memcached", MEMCACHED, folder)
        ways = [Way("sockets", egret, folder), Way("preloaded", egret, folder, is_preloaded=True)]
        version = re.search(r"(\d+)\.(\d+)\.(\d+)", subprocess.run([MEMCACHED, "--version"], capture_output=True, text=True, check=True).stdout)
        is_old = tuple(map(int, version.groups())) < (1, 6, 45)
        passed, wrong = 0, []
        for case in cases():
            expected, failed = judge(case, yardstick, ways, is_old)
            passed += sum(not path.endswith(ENDS) for path in expected)
            wrong += failed
            for each in failed:
                print("FAILED", each, flush=True)
        slots = ways[1].slots()
        print(f"{passed} sections that memcached passes, {len(wrong)} of them failed; {slots} ops went by slots")
        for what, found, least in (("sections that memcached passes", passed, LEAST_SECTIONS), ("ops by slots", slots, LEAST_SLOT_OPS)):
            if found < least:
                wrong.append(what)
                print(f"FAILED only {found} {what}, where {least} are known")
        sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
