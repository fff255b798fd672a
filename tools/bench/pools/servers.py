"""The pools that are measured: Egret's proxy before its backends, and twemproxy before memcacheds. Both kinds have the same methods.

Every process runs on loopback in a directory of its own and is ended by its own process id.
"""

import ctypes
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time

MEMORY_MIB = 64
OP_TIMEOUT_MS = 500  # how long an op may wait for a backend, in both


def _die_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_until(condition, what, seconds=20):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"waited {seconds} s in vain: {what}")
        time.sleep(0.01)


def answers(address, request=b"version\r\n"):
    try:
        with socket.create_connection(address, 2) as sock:
            sock.settimeout(2)
            sock.sendall(request)
            return sock.recv(4096)
    except OSError:
        return b""


class Pool:
    """`count` members serve at first; others wait to be added by set_members()."""

    def __init__(self, count, spare):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="egret-pools."))
        self.address = ("127.0.0.1", free_port())
        self.processes = {}
        self.names = [f"member{number}" for number in range(count + spare)]

    def spawn(self, name, argv):
        with open(self.directory / f"{name}.log", "ab") as log:
            self.processes[name] = subprocess.Popen([str(word) for word in argv], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                                    cwd=self.directory, preexec_fn=_die_with_parent, start_new_session=True)

    def end(self, name, how=signal.SIGTERM):
        process = self.processes.pop(name)
        process.send_signal(how)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def kill(self, number):
        self.end(self.names[number], signal.SIGKILL)

    def halt(self, number):
        self.processes[self.names[number]].send_signal(signal.SIGSTOP)

    def resume(self, number):
        self.processes[self.names[number]].send_signal(signal.SIGCONT)

    def start_member(self, number):
        raise NotImplementedError

    def set_members(self, numbers):
        """Returns when the change is under way."""
        raise NotImplementedError

    def serves(self):
        """Whether keys of all members are served."""
        keys = b" ".join(b"ready%d" % number for number in range(200))
        return answers(self.address, b"get " + keys + b"\r\n") == b"END\r\n"

    def stop(self):
        for name in list(self.processes):
            self.processes[name].send_signal(signal.SIGCONT)
            self.end(name)
        shutil.rmtree(self.directory, ignore_errors=True)


class EgretPool(Pool):
    def __init__(self, build, count, spare=1, options=None, gutter=0):
        super().__init__(count, spare)
        self.build = pathlib.Path(build).resolve()
        self.gutter = [f"gutter{number}" for number in range(gutter)]
        for number in range(len(self.names)):
            self.start_member(number)
        for name in self.gutter:
            self._start_backend(name)
        self.set_members(range(count))
        options = {"listen": "tcp:%s:%d" % self.address, "admin": "", "workers": 2, "op_timeout": f"{OP_TIMEOUT_MS}ms",
                   "backends_file": self.directory / "members", **(options or {})}
        if gutter:
            options["gutter"] = ",".join(self._line(name) for name in self.gutter)
        self.spawn("proxy", [self.build / "egret-proxy"] + [word for key, value in options.items() for word in ("--set", f"{key}={value}")])
        wait_until(self.serves, f"the proxy to serve; see {self.directory}")

    def _line(self, name):
        return f"shm:{self.directory}/{name}.sock name={name}"

    def _start_backend(self, name):
        options = {"listen": f"shm:{self.directory}/{name}.sock", "admin": "", "memory": f"{MEMORY_MIB}MiB", "populate": "false", "partitions": 1}
        self.spawn(name, [self.build / "egret-backend"] + [word for key, value in options.items() for word in ("--set", f"{key}={value}")])

    def start_member(self, number):
        self._start_backend(self.names[number])

    def set_members(self, numbers):
        new = self.directory / "members.new"
        new.write_text("".join(self._line(self.names[number]) + "\n" for number in numbers))
        new.rename(self.directory / "members")


class TwemproxyPool(Pool):
    """Its list of servers cannot be changed: set_members() starts it again, and its clients are disconnected."""

    def __init__(self, nutcracker, memcached, count, spare=1):
        super().__init__(count, spare)
        self.nutcracker, self.memcached = nutcracker, memcached
        self.ports = [free_port() for _ in self.names]
        for number in range(len(self.names)):
            self.start_member(number)
        for port in self.ports:
            wait_until(lambda: answers(("127.0.0.1", port)), "memcached to answer")
        self.set_members(range(count))
        wait_until(self.serves, f"twemproxy to serve; see {self.directory}")

    def start_member(self, number):
        user = ["-u", "root"] if os.geteuid() == 0 else []
        self.spawn(self.names[number], [self.memcached, "-l", "127.0.0.1", "-p", self.ports[number], "-U", 0, "-m", MEMORY_MIB, "-t", 1] + user)

    def set_members(self, numbers):
        servers = "".join(f"    - 127.0.0.1:{self.ports[number]}:1 {self.names[number]}\n" for number in numbers)
        (self.directory / "nutcracker.yml").write_text(
            "pool:\n  listen: %s:%d\n  hash: fnv1a_64\n  distribution: ketama\n  preconnect: true\n" % self.address +
            f"  timeout: {OP_TIMEOUT_MS}\n  auto_eject_hosts: true\n  server_retry_timeout: 2000\n  server_failure_limit: 3\n"
            f"  servers:\n{servers}")
        if "proxy" in self.processes:
            self.end("proxy")
        self.spawn("proxy", [self.nutcracker, "-c", self.directory / "nutcracker.yml", "-s", free_port(), "-a", "127.0.0.1"])
