#!/usr/bin/env python3
"""memcached.py SOURCE BUILD: memcached's own tests against egret-memcached.

SOURCE is a directory in which upstream's source was built, with `make memcached-debug timedrun` (its README: Environment); nothing of it is here.
The tests start their servers themselves, as ./memcached-debug.

    each t/*.t ─▶ egret-memcached ─▶ what failed, but for KNOWN ─▶ memcached-debug, the yardstick: did it pass there? ─▶ then it is wrong

Left out is what Egret does not have, and KNOWN says which single tests look at how memcached keeps its items. Exit status 1: a test that memcached passes has
failed, or one of KNOWN has not.
"""

import pathlib
import re
import subprocess
import sys
import tempfile

SOURCE, BUILD = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
SECONDS = 150  # of a file; one that takes longer hangs
LEFT_OUT = {
    "proxy.*": "memcached's own proxy",
    ".*extstore.*": "items on flash",
    "slabs.*|64bit|issue_14|issue_42|dyn-maxbytes": "how many pages a slab class has: Egret's store is a log",
    "udp|issue_67": "UDP is refused",
    "conn-limits": "limits of memory for responses, with memcached's options and numbers",
    "binary-sasl": "needs a build with SASL, and saslpasswd2",
    "ssl_.*": "needs a build with TLS; Egret's is tested in tests/conformance/test_tls.py",
    "whitespace": "of upstream's source",
}
SIZES = "numbers of size classes, or how much fits in them"
KNOWN = {
    "stats": ("there are more rows", {"expected count of stats values"}),
    "stats-conns": ("UDP is refused", {"udp port number is correct"}),
    "issue_22": (SIZES, {"check evicted"}),
    "issue_29": (SIZES, {"Used one", "Used two"}),
    "issue_163": (SIZES, {"Objects should be reclaimed"}),
    "issue_183": ("what flush_all ended is no expired item", {"Objects should be reclaimed"}),
    "issue_61": ("a turn does not end after -R commands", {"Got a decent number of yields"}),
    "lru": (SIZES, {"some evictions happened"}),
    "lru-crawler": (SIZES + "; the crawler always runs", {
        "1", "slab1 has 90 used chunks", "enabled lru crawler", "slab1 now has 60 used chunks", "slab1 has 30 reclaims", "slab1 now has 0 used chunks"}),
    "lru-maintainer": ("no segments of an LRU, and no temporary one; expired items are swept every 20 s", {
        "expired key automatically reclaimed", "120", "item did not go into hot LRU", "still one item in temporary LRU", "canary"}),
    "restart": ("a file that cannot be used is begun anew; the index has no power of two to tell", {
        "Died with an empty metadata file", "starting hash level is 16", "new hash power level is 17", "restarted hash power level is 17"}),
    "watcher": ("one set more need not evict", {"hangs"}),
}


def reason_to_leave_out(name):
    return next((reason for pattern, reason in LEFT_OUT.items() if re.fullmatch(pattern, name)), None)


class Server:
    """A directory as the tests want it, where ./memcached-debug is this program. Its options of memcached's build are left out."""

    def __init__(self, folder, name, program, options=""):
        self.folder = folder / name
        self.folder.mkdir()
        for part in "t", "timedrun":
            (self.folder / part).symlink_to(SOURCE / part)
        wrapper = self.folder / "memcached-debug"
        wrapper.write_text(f"""#!/bin/bash
words=()
while (($# > 0)); do
  case $1 in
    -U) shift ;;
    -o) if [[ $2 == relaxed_privileges ]]; then shift; else words+=("$1"); fi ;;
    *) words+=("$1") ;;
  esac
  shift
done
exec {program} {options} "${{words[@]}}" 2>>{self.folder}/errors
""")
        wrapper.chmod(0o755)

    def run(self, test):
        """How many tests passed, and the names of those that failed. A test without a name has its number."""
        try:
            done = subprocess.run(["perl", "-It/lib", test], capture_output=True, text=True, timeout=SECONDS, cwd=self.folder, check=False, errors="replace")
        except subprocess.TimeoutExpired:
            return 0, {"hangs"}
        failed = set()
        for number, name in re.findall(r"^not ok (\d+)(?: - ([^\n]*))?$", done.stdout, re.M):
            failed.add(re.sub(r" == .*", "", name)[:80] or number)
        if not re.search(r"^1\.\.\d+", done.stdout, re.M) or done.returncode > 254:
            failed.add("ended early")
        if "not running" in done.stderr or "Dubious" in done.stderr:
            failed.add("ended early")
        return len(re.findall(r"^ok \d+", done.stdout, re.M)), failed


def main():
    tests = sorted(SOURCE.glob("t/*.t"))
    if len(tests) < 60:
        sys.exit(f"{SOURCE}: only {len(tests)} tests in t/")
    with tempfile.TemporaryDirectory(prefix="egret-memcached-tests-") as name:
        egret = Server(pathlib.Path(name), "egret", BUILD / "egret-memcached", "-o egret_debugtime")
        yardstick = Server(pathlib.Path(name), "memcached", SOURCE / "memcached-debug")
        passed, files, wrong = 0, 0, []
        for test in tests:
            if reason_to_leave_out(test.stem):
                continue
            count, failed = egret.run(f"t/{test.name}")
            passed, files = passed + count, files + 1
            known = KNOWN.get(test.stem, (None, set()))[1]
            failed_there = yardstick.run(f"t/{test.name}")[1] if failed - known else set()
            found = [f"{test.name}: {each}" for each in sorted(failed - known - failed_there)]
            found += [f"{test.name}: {each}: passes now" for each in sorted(known - failed)]
            for each in found:
                print("FAILED", each, flush=True)
            wrong += found
        print(f"{files} files, {passed} tests passed, {sum(len(names) for _, names in KNOWN.values())} known to differ, {len(wrong)} wrong")
        sys.exit(1 if wrong or passed < 10_000 else 0)


if __name__ == "__main__":
    main()
