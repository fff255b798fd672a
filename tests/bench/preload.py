#!/usr/bin/env python3
"""What egret-run gains a program in PHP: php-memcached on one host, with memcached by TCP, with Egret by TCP, and with Egret under
egret-run; each server alone in its turn, in one run (A B C A B C ...), and the middle of the rounds.

    tests/bench/preload.py build/release [--rounds 5] [--seconds 1]

Egret is egret-memcached, as two processes and as one. Needs php-cli and php-memcached (tests/packages/test.txt). Not a test: figures vary
with the machine, their ratios less. docs/client/php.md has what was measured.
"""

import argparse
import contextlib
import json
import os
import pathlib
import shutil
import socket
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def serving(*argv):
    """The port of a server that was started by memcached's options."""
    port = free_port()
    as_root = ["-u", "root"] if os.getuid() == 0 else []
    server = subprocess.Popen([*map(str, argv), "-l", "127.0.0.1", "-p", str(port), *as_root], stderr=subprocess.DEVNULL)
    try:
        for _ in range(200):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1) as sock:
                sock.sendall(b"get ready\r\n")
                if sock.recv(100) == b"END\r\n":
                    break
            time.sleep(0.05)
        else:
            sys.exit(f"{argv[0]} does not serve")
        yield port
    finally:
        server.terminate()
        server.wait()


def measure(port, seconds, runner=()):
    done = subprocess.run([*map(str, runner), shutil.which("php"), str(HERE / "preload.php"), str(port), str(seconds)],
                          capture_output=True, text=True)
    if done.returncode != 0 or not done.stdout.startswith("{"):
        sys.exit(done.stdout + done.stderr)
    return json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1)
    args = parser.parse_args()

    egret, runner = args.build / "egret-memcached", [args.build / "egret-run"]
    servers = {"memcached, TCP": (["memcached", "-t", "1"], [])}
    for name, mode in (("two processes", ["--two-processes"]), ("one process", [])):
        servers[f"Egret, {name}, TCP"] = ([egret, *mode], [])
        servers[f"Egret, {name}, egret-run"] = ([egret, *mode], runner)
    results = {name: [] for name in servers}
    for _ in range(args.rounds):
        for name, (argv, before) in servers.items():
            with serving(*argv) as port:
                results[name].append(measure(port, args.seconds, before))

    print(f"{'':32}  get p50 us (of the rounds)   p99 us   Mkeys/s in multigets of 50")
    for name, rounds in results.items():
        def middle(what):
            return statistics.median(each[what] for each in rounds)
        p50s = sorted(each["p50"] for each in rounds)
        print(f"{name:32}  {middle('p50'):6.1f} ({p50s[0]:.1f} to {p50s[-1]:.1f})   {middle('p99'):12.1f}   {middle('mkeys'):.2f}")


if __name__ == "__main__":
    main()
