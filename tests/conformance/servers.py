"""Starts and stops what the tests talk to: the oracle (Debian's memcached, or the one that MEMCACHED names) and the subject.

The subject is chosen by SUT: "memcached" is a second memcached (it proves the tests themselves), "egret" is
egret-backend and egret-proxy from the build directory EGRET_BUILD, "library" is egret-backend and libegret (library.py). A test asks for `oracle` and `subject` (conftest.py)
and uses only what both kinds have: `.address`, `.unix_address()`, `.pids()`.

Every daemon runs in a temporary directory of its own, on loopback, and is ended by its own process id. Everything here
waits for conditions; the timeouts only bound a hang.
"""

import ctypes
import itertools
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
SUT = os.environ.get("SUT", "egret")
MEMCACHED = os.environ.get("MEMCACHED", "memcached")
CONF = pathlib.Path(os.environ.get("EGRET_CONF", ROOT / "conf")).resolve()
BUILD = pathlib.Path(os.environ.get("EGRET_BUILD", ROOT / "build" / "release")).resolve()
POOL = int(os.environ.get("EGRET_POOL", "0"))
# Options of every egret-proxy that a test does not set: "fetch_mode=fetch window=4".
PROXY_OPTIONS = dict(pair.split("=", 1) for pair in os.environ.get("EGRET_PROXY_OPTIONS", "").split())
# The same of every egret-backend.
BACKEND_OPTIONS = dict(pair.split("=", 1) for pair in os.environ.get("EGRET_BACKEND_OPTIONS", "").split())
# Where this host's RDMA device answers: then proxies and backends talk over it, else through shared memory.
RDMA_ADDRESS = os.environ.get("EGRET_RDMA_ADDRESS", "")
# Whether the subject is egret-memcached, as one process.
ONE_PROCESS = os.environ.get("EGRET_ONE_PROCESS", "") == "1"
# Whether proxies and backends talk over TCP.
OVER_TCP = os.environ.get("EGRET_OVER_TCP", "")  # 1: tcp:; fallback: rdma+tcp:, which goes by TCP on a host without RDMA
SOAK_SECONDS = float(os.environ.get("EGRET_SOAK_SECONDS", "0"))
START_TIMEOUT = 20.0
STOP_TIMEOUT = 10.0
# A sanitizer build is several times slower and larger; limits that bound a hang or a leak are stretched by this.
SLACK = float(os.environ.get("EGRET_SLACK", "1"))

_serial = itertools.count()
_reserved = []


def memcached_says(flag):
    return subprocess.run([MEMCACHED, flag], capture_output=True, text=True, check=True).stdout


def memcached_version():
    """Of the oracle, as numbers: (1, 6, 18)."""
    return tuple(int(number) for number in re.search(r"(\d+)\.(\d+)\.(\d+)", memcached_says("-V")).groups())


# Daemons of an older release that stand in for ours, {"egret-backend": folder}: EGRET_OLDER_BACKEND and EGRET_OLDER_PROXY name folders
# with bin/ and conf/, as tests/older/build.sh prints one.
OLDER = {name: pathlib.Path(os.environ[variable]).resolve()
         for name, variable in (("egret-backend", "EGRET_OLDER_BACKEND"), ("egret-proxy", "EGRET_OLDER_PROXY")) if os.environ.get(variable)}
# Egret answers as this version of memcached (0.1.0 as Debian's). An older oracle answers some requests otherwise: newer_memcached.py has the table.
VERSION = (1, 6, 18) if "egret-proxy" in OLDER else (1, 6, 45)
ORACLE_VERSION = memcached_version()
ORACLE_IS_OLD = ORACLE_VERSION < VERSION
# The oracle of SASL: memcached is often built without it, Debian's is not.
MEMCACHED_WITH_SASL = MEMCACHED if "--enable-sasl" in memcached_says("-h") else "memcached"


def free_port():
    """A TCP port that the system gives to nobody else while we run: a socket that does not listen is bound to it. A server that sets
    SO_REUSEADDR can bind it, too."""
    probe = socket.socket()
    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    probe.bind(("127.0.0.1", 0))
    _reserved.append(probe)
    return probe.getsockname()[1]


def wait_for(condition, what, timeout=START_TIMEOUT, step=0.01):
    """Polls until condition() is true and returns its value."""
    end = time.monotonic() + timeout * SLACK
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise TimeoutError(f"waited {timeout * SLACK:.0f} s in vain: {what}")
        time.sleep(step)


def connect(address, timeout=30.0):
    """A connected blocking socket; address is (host, port) or a Unix socket's path."""
    if isinstance(address, (str, os.PathLike)):
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        target = os.fspath(address)
    else:
        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        target = address
    sock.settimeout(timeout * SLACK)
    try:
        sock.connect(target)
    except BaseException:
        sock.close()
        raise
    return sock


def ask(address, request, end=b"\r\n", timeout=10.0):
    """Sends request on a connection of its own and returns the answer up to `end` (or to where the peer closed)."""
    with connect(address, timeout) as sock:
        sock.sendall(request)
        answer = b""
        while not answer.endswith(end):
            piece = sock.recv(65536)
            if not piece:
                break
            answer += piece
        return answer


def stats_of(address, group=b""):
    """`stats` as a dict of str."""
    answer = ask(address, b"stats" + (b" " + group if group else b"") + b"\r\n", end=b"END\r\n")
    rows = (line.split(" ", 2) for line in answer.decode("latin-1").split("\r\n") if line.startswith("STAT "))
    return {row[1]: row[2] if len(row) > 2 else "" for row in rows}


def _die_with_parent():
    """In a new child: be killed when the test run is, however that ends."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


class Daemon:
    """One process with its standard error in a file, ended by its own pid."""

    def __init__(self, argv, directory, name):
        self.argv = [str(arg) for arg in argv]
        self.name = name
        self.log_path = directory / f"{name}.{next(_serial)}.log"
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(
                self.argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=directory, start_new_session=True,
                preexec_fn=_die_with_parent,
            )
        self.pid = self.process.pid

    def is_alive(self):
        return self.process.poll() is None

    def log(self, limit=4000):
        return self.log_path.read_text(errors="replace")[-limit:]

    def signal(self, number):
        self.process.send_signal(number)

    def halt(self):
        """SIGSTOP, and every thread stands still; until SIGCONT."""
        self.signal(signal.SIGSTOP)
        tasks = list(pathlib.Path(f"/proc/{self.pid}/task").iterdir())
        wait_for(lambda: all("\nState:\tT" in (task / "status").read_text() for task in tasks), f"{self.name} to stand still")

    def wait(self, timeout=STOP_TIMEOUT):
        return self.process.wait(timeout * SLACK)

    def kill(self):
        """kill -9, and gone."""
        if self.is_alive():
            self.process.kill()
        self.process.wait()

    def stop(self):
        """SIGTERM, then patience, then kill -9. Returns the exit status."""
        if self.is_alive():
            self.process.terminate()
            try:
                self.wait()
            except subprocess.TimeoutExpired:
                self.kill()
        return self.process.returncode

    def check_alive(self):
        assert self.is_alive(), f"{self.name} ended with status {self.process.returncode}; its log:\n{self.log()}"

    def catches(self, number):
        """Whether it has a handler for that signal: one that comes earlier ends it at once."""
        status = pathlib.Path(f"/proc/{self.pid}/status").read_text()
        return int(re.search(r"^SigCgt:\s*([0-9a-f]+)$", status, re.M).group(1), 16) >> (number - 1) & 1 == 1

    # What /proc says, for the tests of idleness and leaks.
    def cpu_ticks(self):
        fields = pathlib.Path(f"/proc/{self.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return int(fields[11]) + int(fields[12])

    def rss_bytes(self):
        for line in pathlib.Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
        raise AssertionError("no VmRSS")

    def wakeups(self):
        """How often threads of it have gone to sleep; None while one of them runs. The same number again: none has run meanwhile."""
        total = 0
        for task in pathlib.Path(f"/proc/{self.pid}/task").iterdir():
            status = (task / "status").read_text()
            if re.search(r"^State:\s+R", status, re.M):
                return None
            total += int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", status, re.M)[1])
        return total

    def open_files(self):
        return len(os.listdir(f"/proc/{self.pid}/fd"))


def new_backend_address(directory, name):
    """Where a backend of that name may listen."""
    if OVER_TCP:
        return f"{'rdma+tcp' if OVER_TCP == 'fallback' else 'tcp'}:127.0.0.1:{free_port()}"
    if RDMA_ADDRESS:
        return f"rdma:{RDMA_ADDRESS}:{20000 + (os.getpid() * 64 + next(_serial)) % 40000}"
    return f"shm:{directory}/{name}.sock"


def scratch_directory():
    """A directory for sockets and logs. Short: a Unix socket's path holds 107 bytes."""
    return pathlib.Path(tempfile.mkdtemp(prefix="egret-conf."))


def check_logs(directory):
    """Whatever a sanitizer has found in daemons of that directory, also in those that were killed since."""
    for log in directory.glob("*.log"):
        text = log.read_text(errors="replace")
        assert "Sanitizer:" not in text, f"{log.name}:\n{text[-20000:]}"


class Memcached:
    """The oracle, or the subject of SUT=memcached. Extra arguments are memcached's own."""

    is_egret = False
    program = MEMCACHED

    def __init__(self, *extra, memory_mib=1024, unix=False):
        self.directory = scratch_directory()
        self.extra = list(extra)
        self.memory_mib = memory_mib
        self._twin = None
        self.path = self.directory / "memcached.sock" if unix else None
        self.start()

    def start(self):
        # Its background thread holds an item now and then, and then decr does not pad: without it, answers are repeatable.
        argv = [self.program, "-m", self.memory_mib, "-t", 2, "-c", 16384, "-o", "no_lru_maintainer"]
        if os.geteuid() == 0:
            argv += ["-u", "root"]
        for _ in range(5):
            if self.path:
                where = ["-s", self.path]
                self.address = str(self.path)
            else:
                port = free_port()
                where = ["-l", "127.0.0.1", "-p", port, "-U", 0]
                self.address = ("127.0.0.1", port)
            self.daemon = Daemon(argv + where + self.extra, self.directory, "memcached")
            if self._is_ready():
                return
        raise AssertionError(f"memcached does not start:\n{self.daemon.log()}")

    def _is_ready(self):
        def answers():
            if not self.daemon.is_alive():
                return "dead"
            try:
                return ask(self.address, b"version\r\n").startswith(b"VERSION") and "ready"
            except OSError:
                return False

        return wait_for(answers, "memcached to answer") == "ready"

    def unix_address(self):
        """memcached listens on one kind of socket only, so the Unix one is a second process."""
        if self.path:
            return self.address
        if self._twin is None:
            self._twin = type(self)(*self.extra, memory_mib=self.memory_mib, unix=True)
        return self._twin.address

    def daemons(self):
        return [self.daemon]

    def stop(self):
        self.daemon.stop()
        if self._twin:
            self._twin.stop()
        check_logs(self.directory)
        shutil.rmtree(self.directory, ignore_errors=True)


def egret_binary(name):
    path = OLDER[name] / "bin" / name if name in OLDER else BUILD / name
    assert path.exists(), f"{path} is missing: build it, or set EGRET_BUILD to the build directory"
    return path


def shipped_conf(name):
    return OLDER[name] / "conf" / f"{name}.yaml" if name in OLDER else CONF / f"{name}.yaml"


class Egret:
    """One egret-backend and any number of egret-proxy in front of it. Options are those of --set, as keyword arguments
    of dicts; None means: leave the shipped default alone."""

    is_egret = True
    SMALL = {"partitions": 3}
    PROXY = {"workers": 2}
    READY = b"get egret-ready\r\n"

    def __init__(self, backend=None, proxy=None, proxies=1, start=True, defaults=False):
        self.directory = scratch_directory()
        self.backend_address = new_backend_address(self.directory, "backend")
        # Tests run side by side: the default address of `admin` would be the first one's.
        self.backend_options = {"admin": ""} if defaults else {"admin": "", "memory": "1GiB", "populate": "false", **self.SMALL, **BACKEND_OPTIONS}
        self.backend_options.update(backend or {})
        self.proxy_options = {"admin": ""} if defaults else {"admin": "", "max_connections": 16384, **self.PROXY, **PROXY_OPTIONS}
        self.proxy_options.update(proxy or {})
        self.backend = None
        self.proxies = []
        self.addresses = []
        if start:
            self.start_backend()
            for _ in range(proxies):
                self.add_proxy()

    @staticmethod
    def argv(name, options):
        argv = [egret_binary(name), "--config", shipped_conf(name)]
        for key, value in options.items():
            if value is not None:
                argv += ["--set", f"{key}={value}"]
        return argv

    @property
    def backend_socket(self):
        return self.backend_address.removeprefix("shm:")

    # The backend
    def start_backend(self):
        options = {"listen": self.backend_address, **self.backend_options}
        self.backend = Daemon(self.argv("egret-backend", options), self.directory, "egret-backend")
        return self.backend

    def kill_backend(self):
        self.backend.kill()

    # The proxies
    def proxy_argv(self, index):
        options = {"listen": self.listen_of_proxy(index), "backends": self.backends_of_proxy(index), **self.proxy_options}
        return self.argv("egret-proxy", options)

    def listen_of_proxy(self, index):
        host, port = self.addresses[index]
        return f"tcp:{host}:{port},unix:{self._unix_path(index)}"

    def backends_of_proxy(self, _index):
        return self.backend_address

    def _unix_path(self, index):
        return self.directory / f"proxy{index}.sock"

    def start_proxy(self, index):
        """Starts (again) proxy `index` on its address; does not wait for it."""
        self.proxies[index] = Daemon(self.proxy_argv(index), self.directory, f"egret-proxy{index}")
        return self.proxies[index]

    def add_proxy(self, ready=True):
        index = len(self.proxies)
        self.addresses.append(("127.0.0.1", free_port()))
        self.proxies.append(None)
        for _ in range(3):
            daemon = self.start_proxy(index)
            if not ready:
                return index
            if self.wait_ready(index):
                return index
            self.addresses[index] = ("127.0.0.1", free_port())
        raise AssertionError(f"egret-proxy does not start; its log:\n{daemon.log()}\nbackend:\n{self.backend.log()}")

    def wait_ready(self, index=0):
        """Waits until proxy `index` serves from the backend, whichever worker a connection meets. False when it has ended
        instead."""

        def serves():
            if not self.proxies[index].is_alive():
                return "dead"
            try:
                for _ in range(8):
                    if ask(self.addresses[index], self.READY) != b"END\r\n":
                        return False
                return "ready"
            except OSError:
                return False

        try:
            return wait_for(serves, f"proxy {index} to serve") == "ready"
        except TimeoutError as late:
            raise AssertionError(f"{late}\nproxy:\n{self.proxies[index].log()}\nbackend:\n{self.backend.log()}") from None

    @property
    def address(self):
        return self.addresses[0]

    def check_both_ways(self):
        """Over a network: some results were fetched, and some were pushed."""
        rows = stats_of(self.address, b"egret")
        messages, pushed = (sum(int(value) for name, value in rows.items() if re.fullmatch(rf"backend:\d+:lane:\d+:{of}", name)) for of in ("messages", "replies"))
        assert 0 < pushed < messages, f"{pushed} of {messages} results were pushed"

    def unix_address(self, index=0):
        return str(self._unix_path(index))

    def daemons(self):
        return [self.backend] + self.proxies

    def check_alive(self):
        for daemon in self.daemons():
            daemon.check_alive()

    def stop(self):
        for daemon in self.proxies + [self.backend]:
            if daemon:
                daemon.stop()
        check_logs(self.directory)
        keep = os.environ.get("EGRET_KEEP_LOGS")
        if not keep:
            shutil.rmtree(self.directory, ignore_errors=True)


class OneProcess(Memcached):
    """egret-memcached as one process: its two workers own a partition each. Extra arguments are memcached's."""

    @property
    def program(self):
        return egret_binary("egret-memcached")


class EgretPool(Egret):
    """Several egret-backend, all of them behind each egret-proxy. `names` and `weights` are the pool's; `each` adds
    options to single backends. A proxy made by add_lone_proxy() has one backend only: it shows what that one holds."""

    is_pool = True
    SMALL = {"partitions": 2}
    READY = b"get " + b" ".join(b"egret-ready%d" % number for number in range(64)) + b"\r\n"

    def __init__(self, names=("one", "two", "three"), weights=None, each=None, backend=None, **egret_arguments):
        self.names = list(names)
        self.weights = weights or [1] * len(self.names)
        self.each = each or [{} for _ in self.names]
        self.backends = [None] * len(self.names)
        self.alone = {}  # proxy → its only backend
        self.backend_addresses = {}
        super().__init__(backend={"memory": "256MiB", **(backend or {})}, **egret_arguments)

    def address_of_backend(self, number):
        if number not in self.backend_addresses:
            self.backend_addresses[number] = new_backend_address(self.directory, f"backend{number}")
        return self.backend_addresses[number]

    def start_backend(self, number=None):
        """One; or all, and waits until they serve: a proxy ejects one that is not there yet."""
        for each in range(len(self.names)) if number is None else [number]:
            options = {"listen": self.address_of_backend(each), **self.backend_options, **self.each[each]}
            self.backends[each] = Daemon(self.argv("egret-backend", options), self.directory, f"egret-backend{each}")
        self.backend = self.backends[number or 0]
        if number is None:
            wait_for(lambda: all("[serving]" in each.log() or not each.is_alive() for each in self.backends), "the backends to serve")
        return self.backend

    def kill_backend(self, number=0):
        self.backends[number].kill()

    def backends_of_proxy(self, index):
        if index in self.alone:
            return self.address_of_backend(self.alone[index])
        return ",".join(f"{self.address_of_backend(number)} weight={weight} name={name}"
                        for number, (name, weight) in enumerate(zip(self.names, self.weights)))

    def add_lone_proxy(self, number):
        """Its address."""
        self.alone[len(self.proxies)] = number
        return self.addresses[self.add_proxy()]

    def daemons(self):
        return self.backends + self.proxies

    def stop(self):
        for backend in self.backends:
            if backend and backend is not self.backend:
                backend.stop()
        super().stop()


def page_of(daemon, path):
    """Status and text of a page at the daemon's admin address."""
    address = re.search(r"admin address: (\S+)", daemon.log(1 << 20))[1]
    try:
        with urllib.request.urlopen(f"http://{address}{path}", timeout=30 * SLACK) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.read().decode()


def figure_of(daemon, metric):
    """A metric that has no labels."""
    return int(float(re.search(rf"^{metric} (\S+)$", page_of(daemon, "/metrics")[1], re.M)[1]))


def start_subject(**egret_arguments):
    """The subject with its default test set-up: Egret with 3 partitions and 2 workers, or a second memcached."""
    assert SUT in ("egret", "library", "memcached"), f"SUT={SUT}: must be egret, library or memcached"
    if SUT == "memcached":
        return Memcached()
    if SUT == "library":
        import library

        if not ONE_PROCESS:
            return library.Library(**egret_arguments)
    if ONE_PROCESS:
        assert not egret_arguments, "options of daemons, where there is one process"
        return library.LibraryOfOneProcess() if SUT == "library" else OneProcess()
    if POOL and os.environ.get("EGRET_POOL_CHANGES"):
        import living_pool  # which builds on this module

        return living_pool.LivingPool([f"pool{n}" for n in range(POOL)], **egret_arguments)
    return EgretPool([f"pool{n}" for n in range(POOL)], **egret_arguments) if POOL else Egret(**egret_arguments)
