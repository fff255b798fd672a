#!/usr/bin/env python3
"""What `sessions: host` costs: one backend over TCP, two proxies before it, one with a session by worker and one with a session by
host; the same load on both in turn (A B B A ...), and ratios pair by pair.

    tests/bench/handover.py build/release [--workers 2] [--rounds 5] [--seconds 3]

Both processes' CPU counts. Every op of a worker that has not the session is handed over: with two workers half of them, with four
three quarters. Not a test: figures vary with the machine, their ratios less. docs/operate/sizing.md has what was measured.
"""

import argparse
import json
import pathlib
import socket
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
LOADS = {"depth 1": ["-d", "1"], "depth 16": ["-d", "16"], "multiget 50": ["-m", "50"]}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start(build, name, settings, log):
    argv = [build / name, "--config", ROOT / "conf" / f"{name}.yaml"]
    for setting in settings:
        argv += ["--set", setting]
    return subprocess.Popen([str(arg) for arg in argv], stderr=log)


def wait_for(port):
    for _ in range(200):
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=1) as sock:
                sock.sendall(b"get ready\r\n")
                if sock.recv(100) == b"END\r\n":
                    return
        except OSError:
            pass
        time.sleep(0.05)
    sys.exit(f"nobody serves at port {port}")


def measure(build, port, pids, load, seconds):
    argv = [str(build / "egret-bench"), "--connect", f"127.0.0.1:{port}", "--json", "-c", "32", "-t", str(seconds), "--warmup", "0.5", *load]
    for pid in pids:
        argv += ["--pid", str(pid)]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["cases"][0]["subject"]["rounds"][0]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3)
    args = parser.parse_args()
    children = []
    with tempfile.TemporaryDirectory() as folder, open(f"{folder}/log", "wb") as log:
        try:
            meeting = f"tcp:127.0.0.1:{free_port()}"
            backend = start(args.build, "egret-backend", [f"listen={meeting}", "memory=256MiB", "admin=", "populate=false"], log)
            children.append(backend)
            sides = {}
            for mode in ("worker", "host"):
                port = free_port()
                proxy = start(args.build, "egret-proxy", [f"listen=tcp:127.0.0.1:{port}", f"backends={meeting}", "admin=", "slots=none",
                                                          f"workers={args.workers}", f"sessions={mode}"], log)
                children.append(proxy)
                wait_for(port)
                sides[mode] = (port, [backend.pid, proxy.pid])
            print("| load | CPU us/op, worker | host | CPU ratio | ops/s ratio |\n| --- | ---: | ---: | ---: | ---: |")
            for name, load in LOADS.items():
                found = {"worker": [], "host": []}
                for number in range(args.rounds):
                    for mode in ("worker", "host") if number % 2 == 0 else ("host", "worker"):
                        found[mode].append(measure(args.build, *sides[mode], load, args.seconds))
                pairs = list(zip(found["worker"], found["host"]))
                cpu = [host["cpu_us_per_op"] / worker["cpu_us_per_op"] for worker, host in pairs]
                rate = [host["ops_per_s"] / worker["ops_per_s"] for worker, host in pairs]
                middle = {mode: statistics.median(each["cpu_us_per_op"] for each in found[mode]) for mode in found}
                print(f"| {name} | {middle['worker']:.2f} | {middle['host']:.2f} | {statistics.median(cpu):.2f} ({min(cpu):.2f}-{max(cpu):.2f}) "
                      f"| {statistics.median(rate):.2f} ({min(rate):.2f}-{max(rate):.2f}) |", flush=True)
        finally:
            for child in reversed(children):
                child.terminate()
                child.wait()


main()
