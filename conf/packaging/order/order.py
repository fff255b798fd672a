#!/usr/bin/python3
"""Writes functions.ld: the functions that usual requests run, in the order in which they call each other. README.md tells when.

    order.py BUILD      BUILD has an egret-memcached, and the daemons beside it; needs valgrind

One process and two daemons run in callgrind while a client sends each load in turn. Most usual loads come first, so what
they run lies together; what only the others run follows.
"""

import collections
import os
import pathlib
import re
import struct
import sys

HERE = pathlib.Path(__file__).resolve().parent
FUNCTIONS = HERE / "functions.ld"
TIMES = 50
LEAST = 0.4  # calls per turn: less is not usual

HEAD = """/* The functions that usual requests run, in the order in which they call each other. Written by order.py; README.md tells why. */
SECTIONS
{
  .text.usual :
  {
"""
TAIL = """  }
}
INSERT BEFORE .text;
"""


def loads():
    """(name, turn(server, number)) of each, the most usual first."""
    value, large = b"y" * 1024, b"z" * 100_000

    def stored(form):
        return lambda server, at: server.ask(*form(server.key(at)))

    def got(form, depth):
        return lambda server, at: server.ask(*form(server.keys(at, depth)))

    def set_and_get(value, key):
        def turn(server, _):
            server.ask(b"set %s 0 0 %d\r\n%s\r\n" % (key, len(value), value), b"STORED\r\n")
            server.ask(b"get " + key + b"\r\n", profiled.item(key, value) + b"END\r\n")

        return turn

    def binary_get(server, at):
        if at == 0:
            server.client = server.connected()  # a connection keeps the dialect of its first request
        key = server.key(at)
        got = server.exchange(struct.pack(">BBHBBHIIQ", 0x80, 0, len(key), 0, 0, 0, len(key), 0, 0) + key, 24 + 4 + len(profiled.VALUE))
        assert got.endswith(profiled.VALUE), got

    return [
        ("a get", got(profiled.get, 1)),
        ("a set", stored(lambda key: (b"set %s 0 0 32\r\n%s\r\n" % (key, profiled.VALUE), b"STORED\r\n"))),
        ("16 gets", got(profiled.get, 16)),
        ("a multiget", got(profiled.multiget, 50)),
        ("a miss", stored(lambda key: (b"get absent:" + key + b"\r\n", b"END\r\n"))),
        ("a set and a get of 1 KiB", set_and_get(value, b"medium")),
        ("a set and a get of 100 kB", set_and_get(large, b"large")),
        ("a meta get", stored(lambda key: (b"mg " + key + b" v\r\n", b"VA 32\r\n%s\r\n" % profiled.VALUE))),
        ("a meta set", stored(lambda key: (b"ms " + key + b" 32\r\n%s\r\n" % profiled.VALUE, b"HD\r\n"))),
        ("a binary get", binary_get),
    ]


def usual(profile, turns):
    """Mangled names of the functions that a turn called, from the thread's loop downwards, in the order of the calls."""
    calls, callees, function, callee = collections.Counter(), collections.defaultdict(list), "", ""
    for kind, what in profiled.records(profile):
        if kind in ("fn", "cfn"):
            what = re.sub(r"'\d+$", "", what)  # a function that calls itself
        if kind == "fn":
            function = what
        elif kind == "cfn":
            callee = what
        elif kind == "calls":
            calls[callee] += what
            callees[function].append(callee)
    found = {}

    def visit(name):
        if name in found:
            return
        found[name] = None
        for each in callees[name]:
            if calls[each] >= turns * LEAST:
                visit(each)

    for name in list(callees):
        if calls[name] >= turns * LEAST or "run" in name and name.startswith("_ZN5egret"):
            visit(name)
    return [name for name in found if name.startswith("_Z")]


def main():
    found = {}
    sys.setrecursionlimit(10_000)
    for flags in ([], ["--two-processes"]):
        for name, turn in loads():
            with profiled.Profiled(["--demangle=no"], flags) as server:
                for profile in server.profiles(lambda number: turn(server, number), TIMES):
                    found.update(dict.fromkeys(usual(profile, TIMES)))
            print(f"{' '.join(flags) or 'one process'}, {name}: {len(found)} functions so far", flush=True)
    # A function's clone (a part of it, or one for some of its callers) has its name and a suffix.
    lines = [f"    *(.text.{name} .text.{name}.*)\n" for name in dict.fromkeys(re.sub(r"\..*", "", name) for name in found)]
    FUNCTIONS.write_text(HEAD + "".join(lines) + TAIL)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    os.environ["EGRET_BUILD"] = str(pathlib.Path(sys.argv[1]).resolve())
    sys.path.insert(0, str(HERE.parents[2] / "tests" / "calls"))
    import profiled

    main()
