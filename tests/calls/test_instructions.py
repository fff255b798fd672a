"""Instructions of a get in one process, counted by valgrind: what its threads execute meanwhile, without the kernel's part.

`python3 test_instructions.py` prints the table of docs/benchmarks/one-process.md.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "conformance"))
import servers

KEYS, VALUE = 500, b"x" * 32
# What a client sends at once, how often, and the most instructions that a get of it may take: 4 to 9 % above what was
# counted, since another compiler or libc takes a few more or less.
ROWS = {"one get": (1, "gets", 2000, 9100), "16 gets": (16, "gets", 500, 3050), "a multiget of 50": (50, "multiget", 200, 2600)}
PARTS = {  # inclusive, by the function that a part is
    "parsing, and asking the lane": "Dispatcher::feed(",
    "executing: request slot to response slot": "SlotPoller::serve(",
    "results to answers": "ClientLane::finish(",
}


class Profiled:
    """egret-memcached -t 1 in valgrind, which counts only while told to."""

    def __init__(self):
        self.folder = servers.scratch_directory()
        self.profile = self.folder / "profile"
        port = servers.free_port()
        user = ("-u", "root") if os.geteuid() == 0 else ()
        self.process = subprocess.Popen(
            ["valgrind", "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={self.profile}", servers.BUILD / "egret-memcached", "-t", "1", "-m", "64", "-l",
             "127.0.0.1", "-p", str(port), *user], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.address = ("127.0.0.1", port)

    def __enter__(self):
        try:
            self.client = servers.wait_for(self.connected, "egret-memcached in valgrind", timeout=120)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def connected(self):
        assert self.process.poll() is None, "egret-memcached ended in valgrind"
        try:
            return servers.connect(self.address)
        except OSError:
            return None

    def ask(self, request, answer):
        self.client.sendall(request)
        got = b""
        while len(got) < len(answer):
            more = self.client.recv(65536)
            assert more, f"the connection ended after {got}"
            got += more
        assert got == answer

    def instrument(self, on):
        subprocess.run(["callgrind_control", "-i", "on" if on else "off", str(self.process.pid)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)

    def of_a_get(self, depth, form, rounds):
        """{part: instructions of a get}, "all" among them. The server is of no use any more."""
        for key in range(KEYS):
            self.ask(b"set key:%08d 0 0 32\r\n%s\r\n" % (key, VALUE), b"STORED\r\n")

        def run(times):
            for at in range(times):
                keys = [b"key:%08d" % ((at * depth + i) * 7 % KEYS) for i in range(depth)]
                items = [b"VALUE %s 0 32\r\n%s\r\n" % (key, VALUE) for key in keys]
                if form == "gets":
                    self.ask(b"".join(b"get %s\r\n" % key for key in keys), b"".join(item + b"END\r\n" for item in items))
                else:
                    self.ask(b"get " + b" ".join(keys) + b"\r\n", b"".join(items) + b"END\r\n")

        run(20)  # pools are filled, averages are learned
        self.instrument(True)
        run(rounds)
        self.instrument(False)
        self.process.terminate()
        self.process.wait()
        return self.read(rounds * depth)

    def read(self, gets):
        table = subprocess.run(["callgrind_annotate", "--inclusive=yes", "--threshold=100", self.profile], capture_output=True, text=True, check=True).stdout
        rows = [(int(count.replace(",", "")), name) for count, name in re.findall(r"^ *([\d,]+) \([ \d.]+%\) +(.*)$", table, re.M)]
        counts = {part: max((count for count, name in rows if function in name), default=0) for part, function in PARTS.items()}
        counts["all"] = next(count for count, name in rows if "PROGRAM TOTALS" in name)
        return {part: count / gets for part, count in counts.items()}


def count(depth, form, rounds):
    with Profiled() as server:
        return server.of_a_get(depth, form, rounds)


@pytest.mark.parametrize("row", ROWS)
def test_a_get_takes_no_more_instructions_than_it_did(row):
    depth, form, rounds, most = ROWS[row]
    found = count(depth, form, rounds)
    assert all(found[part] > 0 for part in PARTS), f"a part has another name now: {found}"
    assert found["all"] <= most, f"{row}: {found}"


if __name__ == "__main__":
    names = [*PARTS, "all"]
    print("| sent at once | " + " | ".join(names) + " |\n| --- " + "| ---: " * len(names) + "|")
    for name, (depth, form, rounds, _) in ROWS.items():
        found = count(depth, form, rounds)
        print(f"| {name} | " + " | ".join(f"{found[part]:,.0f}" for part in names) + " |")
