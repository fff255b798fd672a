"""A server that counts, and the lone ops of which the counts are.

Each get comes when everybody has gone to sleep after the one before, so what is counted meanwhile is its own. Of one connection and one key
all gets take the same way: to the connection's worker, and to the key's partition.
"""

import os
import pathlib
import shutil
import struct
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "conformance"))
import servers

CONNECTIONS, KEYS, GETS = 16, 2, 4  # gets of each pair, of which the least counts
REST = 0.03  # seconds between two gets: longer than a session ticks on after its last answer
ROW = struct.Struct("24sQ")
MEMORY = ("lines", "atomics")  # count_accesses.cc's
OWN_CALLS = 3  # epoll_wait, recv, send
ATTEMPTS = 4  # on a machine that others use a thread may have slept once more


class Counted:
    """A server with so many workers and partitions. `build`: whose daemons."""

    def __init__(self, kind, number, build=servers.BUILD):
        self.folder = servers.scratch_directory()
        servers.BUILD, before = build, servers.BUILD
        os.environ.update(LD_PRELOAD=str(build / "libegret_count_calls.so"), EGRET_COUNT_CALLS=f"{self.folder}/%p")
        try:
            if kind == "one process":
                self.server = servers.OneProcess("-t", number)
                self.daemons = [self.server.daemon]
            else:
                self.server = servers.Egret(backend={"partitions": number}, proxy={"workers": number})
                self.daemons = self.server.daemons()
        finally:
            servers.BUILD = before
            del os.environ["LD_PRELOAD"], os.environ["EGRET_COUNT_CALLS"]
        self.files = [self.folder / str(each.pid) for each in self.daemons]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def counts(self):
        """{name: its sum over all daemons}, "wake-ups" and "calls", all system calls together, among them."""
        sums = {"calls": 0, "wake-ups": sum(servers.wait_for(each.wakeups, f"{each.name} to sleep", step=0.001) for each in self.daemons)}
        for file in self.files:
            for name, value in ROW.iter_unpack(file.read_bytes()):
                name = name.rstrip(b"\0").decode()
                if not name:  # the first row, and those that nobody has taken
                    continue
                sums[name] = sums.get(name, 0) + value
                if name not in MEMORY:
                    sums["calls"] += value
        return sums

    def lone_gets(self, *names):
        """Of each connection and key the least that a get has taken, by these names."""
        sockets = [servers.connect(self.server.address) for _ in range(CONNECTIONS)]
        found = []
        for sock in sockets:
            for key in range(KEYS):
                seen = []
                for _ in range(1 + GETS):
                    before = self.counts()
                    sock.sendall(b"get key%d\r\n" % key)
                    assert sock.recv(100) == b"END\r\n"
                    time.sleep(REST)
                    after = self.counts()
                    seen.append(tuple(after[name] - before.get(name, 0) for name in names))
                found.append(min(seen[1:]))
        for sock in sockets:
            sock.close()
        return found


def figures(kind, number, *names, build=servers.BUILD):
    """What gets take that stay in one thread, and those that cross: of each name, None where there are none. Of two daemons some
    that cross are passed on by the session's home partition to the key's: that is the rule with many, and half of them with two, so
    what three of four do not exceed is what such ones take."""
    with Counted(kind, number, build) as server:
        if "lines" in names:
            server.lone_gets("calls")  # a thread's first reads of what it then keeps in its cache
        found = server.lone_gets("calls", *names)
    own = [each for each in found if kind == "one process" and each[0] <= OWN_CALLS]
    crossing = [each for each in found if each not in own]
    return tuple(tuple(sorted(column)[len(column) * 3 // 4] for column in zip(*part)) if part else None for part in (own, crossing))


def grow_little(kind, *names, build=servers.BUILD):
    """(whether an op that crosses takes as much with sixteen workers and partitions as with two, what was seen). One more may be chance: a
    thread that looks once more before it sleeps finds the answer, or does not. What grows with their number would be fourteen more."""
    seen = []
    for _ in range(ATTEMPTS):
        (_, few), (_, many) = figures(kind, 2, *names, build=build), figures(kind, 16, *names, build=build)
        seen.append((few, many))
        if few and many and all(0 < with_many <= max(1.05 * with_few, with_few + 1) for with_few, with_many in zip(few, many)):
            return True, seen
    return False, seen


def print_table(*names, kinds=("one process", "two daemons"), build=servers.BUILD):
    titles = ("calls", *names)
    print(f"| | workers | {', '.join(titles)} of an op that stays | of one that crosses |\n| --- | ---: | ---: | ---: |")
    for kind in kinds:
        for number in (1, 2, 4, 16):
            columns = [", ".join(map(str, part)) if part else "–" for part in figures(kind, number, *names, build=build)]
            print(f"| {kind} | {number} | {' | '.join(columns)} |", flush=True)
