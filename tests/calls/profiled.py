"""egret-memcached in valgrind's callgrind, which counts what its threads execute, without the kernel's part, only while told to."""

import collections
import os
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "conformance"))
import servers

KEYS, VALUE = 500, b"x" * 32


def get(keys):
    return b"".join(b"get %s\r\n" % key for key in keys), b"".join(item(key) + b"END\r\n" for key in keys)


def multiget(keys):
    return b"get " + b" ".join(keys) + b"\r\n", b"".join(item(key) for key in keys) + b"END\r\n"


def item(key, value=VALUE):
    return b"VALUE %s 0 %d\r\n%s\r\n" % (key, len(value), value)


class Profiled:
    """A server with KEYS keys, and a client of it. `options` are callgrind's, `flags` egret-memcached's."""

    def __init__(self, options=(), flags=()):
        self.folder = servers.scratch_directory()
        port = servers.free_port()
        user = ("-u", "root") if os.geteuid() == 0 else ()
        self.process = subprocess.Popen(
            ["valgrind", "--tool=callgrind", "--trace-children=yes", "--instr-atstart=no", f"--callgrind-out-file={self.folder}/profile.%p", *options,
             servers.BUILD / "egret-memcached", "-t", "1", "-m", "64", "-l", "127.0.0.1", "-p", str(port), *user, *flags], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.address = ("127.0.0.1", port)

    def __enter__(self):
        try:
            self.client = servers.wait_for(self.connected, "egret-memcached in valgrind", timeout=120)
            for key in map(self.key, range(KEYS)):
                self.ask(b"set %s 0 0 %d\r\n%s\r\n" % (key, len(VALUE), VALUE), b"STORED\r\n")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.end()
        shutil.rmtree(self.folder, ignore_errors=True)

    def end(self):
        """And with it the process that it has started."""
        self.process.terminate()
        try:
            self.process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    @staticmethod
    def key(number):
        return b"key:%08d" % (number % KEYS)

    def keys(self, turn, depth):
        return [self.key((turn * depth + i) * 7) for i in range(depth)]

    def connected(self):
        assert self.process.poll() is None, "egret-memcached ended in valgrind"
        try:
            return servers.connect(self.address)
        except OSError:
            return None

    def ask(self, request, answer):
        got = self.exchange(request, len(answer))
        assert got == answer, f"{got} for {request}"

    def exchange(self, request, length):
        """The answer, of `length` bytes."""
        self.client.sendall(request)
        got = b""
        while len(got) < length:
            more = self.client.recv(65536)
            assert more, f"the connection ended after {got}"
            got += more
        return got

    def processes(self):
        """egret-memcached, and whom it has started."""
        children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return [str(self.process.pid), *children]

    def instrument(self, on):
        for process in self.processes():
            subprocess.run(["callgrind_control", "-i", "on" if on else "off", process], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)

    def profiles(self, turn, times):
        """The profiles, one of each process, of turn(0), turn(1) ... The server is of no use any more."""
        for at in range(20):  # pools are filled, averages are learned
            turn(at)
        self.instrument(True)
        for at in range(times):
            turn(at)
        self.instrument(False)
        self.end()
        return sorted(self.folder.glob("profile.*"))


def records(profile):
    """(kind, name or number of calls or (address, instructions)) of a profile, with its abbreviations resolved: callgrind's format, as valgrind's manual has it."""
    names, address, is_call = {"ob": {}, "fn": {}}, 0, False
    for line in profile.read_text().splitlines():
        if match := re.match(r"(c?)(ob|fn)=(?:\((\d+)\))? ?(.*)", line):
            called, table, number, name = match.groups()
            if number:
                name = names[table].setdefault(number, name)
            yield called + table, name
        elif line.startswith("calls="):
            is_call = True
            yield "calls", int(line[len("calls="):].split()[0])
        elif re.match(r"0x|[+*-]", line):
            position, _, count = (line.split() + ["0", "0"])[:3]
            step = int(position[1:] or "0", 0) if position[0] in "+-" else 0
            address = int(position, 16) if position.startswith("0x") else address - step if position[0] == "-" else address + step
            if not is_call:  # else what the callee takes, which its own lines tell, too
                yield "executed", (address, int(count))
            is_call = False


def code_pages(profile, least):
    """Pages of 4 KiB of all programs and libraries in which an instruction was executed `least` times (options: --dump-instr=yes)."""
    counts, library = collections.Counter(), ""
    for kind, what in records(profile):
        if kind == "ob":
            library = what
        elif kind == "executed":
            counts[library, what[0]] += what[1]
    return len({(library, address // 4096) for (library, address), count in counts.items() if count >= least})
