#!/usr/bin/env python3
"""libmemcached.py RUNTESTS BUILD: libmemcached's own tests against egret-memcached, over sockets and with the preload library.

RUNTESTS is the program of that name that upstream's build makes with -DBUILD_TESTING=ON (its README: Testing); nothing of it is here.
It starts the servers itself, as $MEMCACHED_BINARY.

    each test case ─▶ memcached, the yardstick ─▶ its sections that passed ─┐
                  ├─▶ egret-memcached, over sockets  ───────────────────────┼─▶ all of these passed, too
                  └─▶ egret-memcached, the tests under egret-run ───────────┘   and slots were used

Left out: what speaks UDP, which Egret refuses (its servers are started without); and memcapable's ascii test where the memcached here is older than 1.6.45,
whose answer to a delete with a time is Egret's (tests/conformance/test_real_clients.py). Exit status 1: a section that memcached passes has failed twice.
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
        results = collections.defaultdict(lambda: True)
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


def main():
    with tempfile.TemporaryDirectory(prefix="egret-libmemcached-") as name:
        folder = pathlib.Path(name)
        folder.chmod(0o755)
        egret = wrapper(folder, BUILD / "egret-memcached")
        yardstick = Way("memcached", "memcached", folder)
        ways = [Way("sockets", egret, folder), Way("preloaded", egret, folder, is_preloaded=True)]
        version = re.search(r"(\d+)\.(\d+)\.(\d+)", subprocess.run(["memcached", "--version"], capture_output=True, text=True, check=True).stdout)
        is_old = tuple(map(int, version.groups())) < (1, 6, 45)
        passed, wrong = 0, []
        for case in cases():
            expected, failing = yardstick.run(case)
            if failing:
                print(f"{case}: memcached fails {len(failing)} of {len(failing | expected)}")
            expected = {path for path in expected if not OVER_UDP.search(path)}
            if is_old:
                expected = {path for path in expected if not OF_OLD_MEMCACHED.match(path)}
            passed += len(expected)
            for way in ways:
                missing = expected - way.run(case)[0]
                if missing:
                    missing -= way.run(case)[0]
                for path in sorted(missing):
                    wrong.append(f"{way.name}: {path}")
                    print("FAILED", wrong[-1], flush=True)
        slots = ways[1].slots()
        print(f"{passed} sections that memcached passes, {len(wrong)} of them failed; {slots} ops went by slots")
        sys.exit(1 if wrong or passed < 200 or slots < 1000 else 0)


if __name__ == "__main__":
    main()
