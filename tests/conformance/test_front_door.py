"""egret-memcached takes memcached's flags, and does with them what memcached does: both are run with the same ones."""

import ctypes
import itertools
import os
import pathlib
import pwd
import re
import shutil
import signal
import socket
import ssl
import stat
import struct
import subprocess
import time

import pytest

from servers import MEMCACHED, SLACK, SUT, Daemon, ask, connect, egret_binary, free_port, scratch_directory, stats_of, wait_for

pytestmark = pytest.mark.skipif(SUT != "egret", reason="egret-memcached's own")

SERIAL = itertools.count()
AS_ROOT = ["-u", "root"] if os.geteuid() == 0 else []
# What makes it one process, and two.
WAYS = {"one-process": [], "two-processes": ["--two-processes"]}


@pytest.fixture
def directory():
    path = scratch_directory()
    yield path
    shutil.rmtree(path, ignore_errors=True)


class Front(Daemon):
    """A running egret-memcached on a port of its own choice, or on what `flags` say."""

    def __init__(self, directory, *flags, where=("-l", "127.0.0.1", "-p", "-1"), environment=None):
        self.ports_path = directory / f"ports.{next(SERIAL)}"
        variables = {"MEMCACHED_PORT_FILENAME": self.ports_path, **(environment or {})}
        words = [egret_binary("egret-memcached"), *AS_ROOT, *where, *flags]
        super().__init__(["env", *(f"{name}={value}" for name, value in variables.items()), *words], directory, "egret-memcached")

    def ports(self):
        """As memcached's test library reads them: (family, port) of each line."""
        wait_for(lambda: self.ports_path.exists() or not self.is_alive(), "the port file")
        assert self.ports_path.exists(), self.log()
        return [(line.split()[1].rstrip(":"), int(line.split()[2])) for line in self.ports_path.read_text().splitlines()]

    @property
    def address(self):
        return ("127.0.0.1", self.ports()[0][1])

    def children(self):
        """The pids of its daemons; none in one process."""
        return [self.child("egret-backend"), self.child("egret-proxy")] if "--two-processes" in self.argv else []

    def child(self, name):
        """The pid of that daemon of this instance."""
        for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
            try:
                pid, rest = path.read_text().split(" (", 1)
            except OSError:
                continue
            comm, rest = rest.rsplit(") ", 1)
            if comm == name[:15] and int(rest.split()[1]) == self.pid:
                return int(pid)
        raise AssertionError(f"no {name}")


def starts(directory, way):
    running = []

    def start(*flags, **arguments):
        running.append(Front(directory, *WAYS[way], *flags, **arguments))
        return running[-1]
    yield start
    for daemon in running:
        daemon.stop()


@pytest.fixture(params=WAYS)
def front(directory, request):
    """Starts one, in either way."""
    yield from starts(directory, request.param)


@pytest.fixture
def apart(directory):
    """Starts one whose daemons are processes of their own."""
    yield from starts(directory, "two-processes")


def run(name, *flags, timeout=20):
    binary = egret_binary("egret-memcached") if name == "egret" else MEMCACHED
    return subprocess.run([binary, *map(str, flags)], capture_output=True, text=True, timeout=timeout * SLACK, check=False,
                          stdin=subprocess.DEVNULL)


def is_gone(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1].startswith("Z")
    except OSError:
        return True


# --- what it says and refuses

REFUSED_BY_BOTH = [
    ["-q"], ["--no-such-flag"], ["-c", "0"], ["-c", "-1"], ["-t", "0"], ["-R", "0"], ["-f", "1"], ["-n", "0"], ["-B", "http"],
    ["-I", "1000"], ["-I", "33m"], ["-m", "1"], ["-m", "0"], ["-m", "4096", "-I", "1025m"], ["-p", "65536"], ["-p"],
    ["-o", "no_such_option"], ["-o", "hashpower"], ["-o", "hashpower=11"], ["-o", "tail_repair_time=1"],
    ["-o", "hot_lru_pct=90"], ["-o", "idle_timeout"], ["-o", "ssl_verify_mode=4"], ["-o", "ssl_min_version=9"],
    ["-l", "notls:127.0.0.1", "-p", "11999"], ["-Z", "-p", "0"], ["-Z"], ["-S", "-B", "ascii"], ["-S", "-B", "auto"],
    ["-Y", "/no/such/file", "-B", "binary"], ["-N", "0"], ["-D", ""], ["-o", "slab_automove_window=2"],
]


@pytest.mark.parametrize("flags", REFUSED_BY_BOTH, ids=" ".join)
def test_what_memcached_refuses_is_refused_with_its_status(flags):
    memcached = run("memcached", *AS_ROOT, "-l", "127.0.0.1", *flags)
    egret = run("egret", *AS_ROOT, "-l", "127.0.0.1", *flags)
    assert memcached.returncode != 0
    assert egret.returncode == memcached.returncode, f"memcached: {memcached.stderr}\negret: {egret.stderr}"
    assert egret.stderr


@pytest.mark.parametrize("flags", [["-U", "11211"], ["-o", "ext_path=/tmp/x:64m"], ["-o", "proxy_config=x.lua"], ["-p", "0"],
                                   ["-o", "drop_privileges"], ["-m", "4096", "-I", "1024m"]], ids=" ".join)
def test_what_would_be_missed_is_refused(flags):
    result = run("egret", *AS_ROOT, *flags)
    assert result.returncode == 1 and result.stderr.count("\n") == 1, result.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="for root")
def test_root_must_name_a_user():
    for flags in ([], ["-u", ""], ["-u", "no-such-user"]):
        memcached, egret = run("memcached", *flags), run("egret", *flags)
        said = memcached.stderr.replace("can't run as root without the -u switch", "must add '-u root' to start as root")  # in 1.6.18
        assert (egret.returncode, egret.stderr) == (memcached.returncode, said)


@pytest.mark.skipif(os.geteuid() != 0, reason="for root")
def test_it_runs_as_the_user(front, directory):
    directory.chmod(0o777)
    server = front(where=("-l", "127.0.0.1", "-p", "-1", "-u", "nobody"))
    assert ask(server.address, b"version\r\n").startswith(b"VERSION")
    nobody = pwd.getpwnam("nobody").pw_uid
    for pid in (server.pid, *server.children()):
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
        assert f"Uid:\t{nobody}\t{nobody}\t{nobody}\t{nobody}" in status
        assert "Groups:\t \n" in status or "Groups:\t\n" in status


def test_version_and_help(front):
    version = run("egret", "-V")
    assert version.returncode == 0
    first, second = version.stdout.splitlines()
    assert first.split()[0] == "memcached" and "gret" in second
    assert ask(front().address, b"version\r\n").decode().split()[1] == first.split()[1]
    for flag in ("-h", "--help"):
        text = run("egret", flag)
        assert text.returncode == 0 and "--conn-limit=<num>" in text.stdout and "- idle_timeout:" in text.stdout
    assert run("egret", "-i").returncode == 0
    # Test suites look there for what a memcached was built with.
    assert "enable-ssl" in text.stdout and "sasl" in text.stdout and "unix-socket" in text.stdout
    assert "ext_path" not in text.stdout and "proxy_config" not in text.stdout and "no_drop_privileges" not in text.stdout


def test_what_has_no_meaning_is_named_in_one_line(front):
    server = front("-R", "30", "-C", "-o", "modern,slab_reassign,hashpower=16")
    server.ports()
    lines = server.log().splitlines()
    assert len(lines) == 1, server.log()
    for flag in ("-R", "-C", "-o modern", "-o slab_reassign", "-o hashpower"):
        assert flag in lines[0]


# --- what flags do

@pytest.mark.parametrize("flags, rows", [
    ([], {"maxbytes": "67108864", "maxconns": "1024", "evictions": "on", "item_size_max": "1048576", "udpport": "0", "verbosity": "0"}),
    (["-m", "100", "-c", "77", "-t", "2", "-I", "2m", "-M"],
     {"maxbytes": "104857600", "maxconns": "77", "num_threads": "2", "item_size_max": "2097152", "evictions": "off"}),
    (["--memory-limit=32", "--conn-limit", "50", "--threads=3", "--max-item-size=512k", "--disable-evictions", "--listen-backlog=99"],
     {"maxbytes": "33554432", "maxconns": "50", "num_threads": "3", "item_size_max": "524288", "evictions": "off", "tcp_backlog": "99"}),
    (["-vv", "-C", "-R", "33", "-n", "64", "-o", "hashpower=17,hot_lru_pct=11"],
     {"verbosity": "2", "cas_enabled": "no", "reqs_per_event": "33", "chunk_size": "64", "hashpower_init": "17", "hot_lru_pct": "11"}),
], ids=["defaults", "short", "long", "ignored"])
def test_settings_show_the_flags_as_memcached_shows_them(front, flags, rows):
    shown = stats_of(front(*flags).address, b"settings")
    assert {name: shown[name] for name in rows} == rows
    port = free_port()
    memcached = Daemon([MEMCACHED, *AS_ROOT, "-l", "127.0.0.1", "-p", port, *flags], scratch_directory(), "memcached")
    try:
        wait_for(lambda: socket.socket().connect_ex(("127.0.0.1", port)) == 0, "memcached")
        theirs = stats_of(("127.0.0.1", port), b"settings")
        assert {name: theirs[name] for name in rows} == rows
    finally:
        memcached.stop()


def test_large_items_and_no_evictions(front):
    server = front("-m", "3", "-M", "-I", "1m")
    with connect(server.address) as sock:
        answers = []
        for number in range(8):
            sock.sendall(b"set key%d 0 0 800000\r\n%s\r\n" % (number, b"x" * 800000))
            answers.append(sock.makefile("rb").readline())
    assert answers[0] == b"STORED\r\n" and answers[-1].startswith(b"SERVER_ERROR out of memory"), answers


def test_a_unix_socket_and_its_mode(front, directory):
    path = directory / "door"
    server = front("-s", path, "-a", "0752", where=())
    wait_for(path.exists, "the socket")
    assert stat.S_IMODE(path.stat().st_mode) == 0o752
    wait_for(lambda: ask(str(path), b"version\r\n").startswith(b"VERSION"), "an answer")
    shown = stats_of(str(path), b"settings")
    assert shown["domain_socket"] == str(path) and shown["umask"] == "752" and shown["tcpport"] == "0"
    assert not server.ports_path.exists()
    assert server.stop() == 0 and not path.exists()


def test_a_path_is_of_the_directory_it_was_started_in(front, directory):
    front("-s", "door", where=())
    wait_for((directory / "door").exists, "the socket")


def test_several_addresses_and_ports(front):
    one, two = free_port(), free_port()
    server = front(where=("-l", f"127.0.0.1:{one},127.0.0.2", "-p", str(two)))
    assert sorted(server.ports()) == sorted([("INET", one), ("INET", two)])
    assert ask(("127.0.0.1", one), b"version\r\n").startswith(b"VERSION")
    assert ask(("127.0.0.2", two), b"version\r\n").startswith(b"VERSION")


def test_without_an_address_it_listens_on_every_one(front):
    ports = front(where=("-p", "-1")).ports()
    port = dict(ports)["INET"]
    assert ask(("127.0.0.3", port), b"version\r\n").startswith(b"VERSION")
    if "INET6" in dict(ports):
        with socket.create_connection(("::1", dict(ports)["INET6"]), 10) as sock:
            sock.sendall(b"version\r\n")
            assert sock.recv(100).startswith(b"VERSION")


def test_a_port_in_use_is_one_line_and_memcacheds_status():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        for flags in (["-l", "127.0.0.1", "-p", port], ["-d", "-l", "127.0.0.1", "-p", port]):
            egret = run("egret", *AS_ROOT, *flags)
            assert egret.returncode == 71 and port in egret.stderr and "in use" in egret.stderr, egret.stderr
        memcached = run("memcached", *AS_ROOT, "-l", "127.0.0.1", "-p", port)
        assert memcached.returncode == 71


@pytest.fixture
def certificate(directory):
    """Certificate and key."""
    paths = directory / "certificate.pem", directory / "key.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=egret", "-days", "2",
                    "-out", paths[0], "-keyout", paths[1]], check=True, capture_output=True)
    return paths


def ask_over_tls(address, request):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with connect(address, 5) as plain, context.wrap_socket(plain) as sock:
        sock.sendall(request)
        return sock.recv(1000), sock.version()


def test_tls_but_for_an_address_without(front, certificate):
    tls, plain = free_port(), free_port()
    server = front("-Z", "-o", f"ssl_chain_cert={certificate[0]},ssl_key={certificate[1]},ssl_min_version=3",
                   where=("-l", f"notls:127.0.0.1:{plain},127.0.0.1:{tls}"))
    server.ports()
    answer, version = ask_over_tls(("127.0.0.1", tls), b"version\r\n")
    assert answer.startswith(b"VERSION") and version == "TLSv1.3"
    assert ask(("127.0.0.1", plain), b"version\r\n").startswith(b"VERSION")
    assert stats_of(("127.0.0.1", plain), b"settings")["ssl_enabled"] == "yes"
    server.signal(signal.SIGHUP)  # the certificate is read again, and everything goes on
    assert ask_over_tls(("127.0.0.1", tls), b"version\r\n")[0].startswith(b"VERSION")
    server.check_alive()


def test_an_idle_client_is_dropped(front):
    server = front("-o", "idle_timeout=1")
    with connect(server.address, 20) as sock:
        assert sock.recv(10) == b""
    assert stats_of(server.address)["idle_kicks"] == "1"
    assert stats_of(server.address, b"settings")["idle_timeout"] == "1"


def test_connections_above_the_limit_wait_if_they_are_told_to(front):
    server = front("-c", "3", "-o", "no_maxconns_fast")
    server.ports()
    assert stats_of(server.address, b"settings")["maxconns_fast"] == "no"


def binary_request(opcode, key=b"", value=b""):
    return struct.pack(">BBHBBHIIQ", 0x80, opcode, len(key), 0, 0, 0, len(key) + len(value), 7, 0) + key + value


def binary_status(address, *requests):
    """The status of the answer to the last of them."""
    with connect(address, 10) as sock, sock.makefile("rb") as answers:
        for request in requests:
            sock.sendall(request)
            head = struct.unpack(">BBHBBHIIQ", answers.read(24))
            answers.read(head[6])
        return head[5]


BINARY_VERSION = binary_request(0x0b)
SASL_PLAIN = binary_request(0x21, b"PLAIN", b"\0someone\0secret")
NEEDS_AUTHENTICATION = 0x20


@pytest.fixture
def passwords(directory):
    path = directory / "passwords"
    path.write_text("someone:secret\n")
    return path


@pytest.mark.parametrize("name", ["ascii", "binary", "auto"])
def test_the_dialect(front, name):
    server = front("-B", name)
    shown = {"ascii": "ascii", "binary": "binary", "auto": "auto-negotiate"}
    if name == "binary":
        assert ask(server.address, b"version\r\n", timeout=5) == b""  # closed
    else:
        assert stats_of(server.address, b"settings")["binding_protocol"] == shown[name]
    if name != "ascii":
        assert binary_status(server.address, BINARY_VERSION) == 0


def test_text_clients_authenticate(front, passwords):
    address = front("-Y", passwords).address
    assert ask(address, b"get a\r\n") == b"CLIENT_ERROR unauthenticated\r\n"
    with connect(address, 10) as sock, sock.makefile("rb") as answers:
        sock.sendall(b"set auth 0 0 14\r\nsomeone secret\r\nget a\r\n")
        assert [answers.readline(), answers.readline()] == [b"STORED\r\n", b"END\r\n"]


def test_binary_clients_authenticate_by_sasl(front, passwords):
    get = binary_request(0x00, b"a")
    by_variable = front("-S", environment={"MEMCACHED_SASL_PWDB": str(passwords)})
    by_flag = front("-S", "-Y", passwords)
    for server in (by_variable, by_flag):
        assert binary_status(server.address, get) == NEEDS_AUTHENTICATION
        assert binary_status(server.address, SASL_PLAIN, get) == 1  # not found
    assert ask(by_variable.address, b"version\r\n", timeout=5) == b""


def test_flush_all_can_be_forbidden(front):
    address = front("-F").address
    assert ask(address, b"flush_all\r\n") == b"CLIENT_ERROR flush_all not allowed\r\n"
    assert stats_of(address, b"settings")["flush_enabled"] == "no"


# --- the process

def test_whoever_connects_when_it_is_ready_is_served(front):
    for _ in range(5):
        server = front("-t", "4")
        address = server.address  # known as soon as it says that it is ready
        for _ in range(8):
            assert ask(address, b"set ready 0 0 1\r\nx\r\n") == b"STORED\r\n"
        assert server.stop() == 0


def daemonized(directory, *flags):
    pid_path = directory / "pid"
    result = run("egret", *AS_ROOT, "-d", "-P", pid_path, *flags)
    return result, pid_path


def test_in_the_background(directory):
    port = free_port()
    started = time.monotonic()
    result, pid_path = daemonized(directory, "-l", "127.0.0.1", "-p", port)
    assert result.returncode == 0 and not result.stderr, result.stderr
    assert time.monotonic() - started < 20 * SLACK  # it does not keep the output open
    pid = int(pid_path.read_text())
    try:
        assert ask(("127.0.0.1", port), b"version\r\n").startswith(b"VERSION")  # at once
        assert os.readlink(f"/proc/{pid}/cwd") == "/"
        assert os.readlink(f"/proc/{pid}/fd/2") == "/dev/null"
        assert os.getsid(pid) == pid
    finally:
        os.kill(pid, signal.SIGTERM)
    wait_for(lambda: is_gone(pid), "its end")
    assert not pid_path.exists()


def test_what_goes_wrong_in_the_background_is_told(directory):
    result, pid_path = daemonized(directory, "-e", "/no/such/place/file", "-p", "-1")
    assert result.returncode == 1 and "/no/such/place" in result.stderr, result.stderr
    assert not pid_path.exists()


def test_the_pid_file(front, directory):
    path = directory / "pid"
    server = front("-P", path)
    server.ports()
    wait_for(path.exists, "the pid file")
    assert path.read_text() == f"{server.pid}\n"
    assert stats_of(server.address)["pid"] == str(server.pid)
    assert server.stop() == 0 and not path.exists()
    path.write_text(f"{os.getpid()}\n")
    server = front("-P", path)
    wait_for(lambda: path.read_text() == f"{server.pid}\n", "the pid file")
    assert str(os.getpid()) in server.log()
    path.write_text("1\n")  # another's by now: it stays
    server.stop()
    assert path.exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1])
def test_a_signal_ends_all_of_it(front, number):
    server = front()
    children = server.children() if server.ports() else []
    server.signal(number)
    assert server.wait() == 0
    assert all(is_gone(pid) for pid in children)
    assert socket.socket().connect_ex(server.address) != 0


@pytest.mark.parametrize("name, other", [("egret-backend", "egret-proxy"), ("egret-proxy", "egret-backend")])
def test_when_either_ends_the_other_does_and_the_status_is_1(apart, name, other):
    server = apart()
    server.ports()
    rest = server.child(other)
    os.kill(server.child(name), signal.SIGKILL)
    assert server.wait() == 1
    assert is_gone(rest)
    assert name in server.log()


def test_when_it_is_killed_both_end(apart):
    server = apart()
    server.ports()
    children = [server.child("egret-backend"), server.child("egret-proxy")]
    server.kill()
    wait_for(lambda: all(is_gone(pid) for pid in children), "the end of both")


def test_no_descriptor_reaches_the_daemons(directory):
    """Those that this test leaves open, and the launcher's own."""
    with open(directory / "mine", "w") as mine:
        os.set_inheritable(mine.fileno(), True)
        ports = directory / "ports"
        process = subprocess.Popen([egret_binary("egret-memcached"), "--two-processes", *AS_ROOT, "-l", "127.0.0.1", "-p", "-1"], pass_fds=[mine.fileno()],
                                   env={**os.environ, "MEMCACHED_PORT_FILENAME": str(ports)}, stdin=subprocess.DEVNULL,
                                   preexec_fn=lambda: ctypes.CDLL(None).prctl(1, signal.SIGKILL))
        try:
            wait_for(ports.exists, "the port file")
            for child in (Front.child(process, "egret-backend"), Front.child(process, "egret-proxy")):
                files = [os.readlink(path) for path in pathlib.Path(f"/proc/{child}/fd").iterdir()]
                assert str(directory / "mine") not in files
                assert not any("signalfd" in name for name in files)
                blocked = [line for line in pathlib.Path(f"/proc/{child}/status").read_text().splitlines() if line.startswith("SigBlk")]
                assert blocked[0].split()[1].strip("0") == ""
        finally:
            process.terminate()
            assert process.wait(10 * SLACK) == 0


def test_a_stop_while_it_starts(front):
    for pause in (0, 0.005, 0.02, 0.05):
        server = front()
        time.sleep(pause)  # wherever it is then
        server.signal(signal.SIGTERM)
        assert server.wait() in (0, -signal.SIGTERM)


def test_one_process_is_one(front):
    server = front("-t", "2")
    server.ports()
    children = pathlib.Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()
    assert len(children) == len(server.children())


def test_two_instances_do_not_meet(front):
    one, two = front(), None
    address = one.address
    two = front()
    assert ask(address, b"set mine 0 0 1\r\n1\r\n") == b"STORED\r\n"
    assert ask(two.address, b"get mine\r\n") == b"END\r\n"


def test_items_are_kept_over_a_stop(front, directory):
    flags = ("-e", f"/dev/shm/{directory.name}", "-m", "16")
    try:
        server = front(*flags)
        assert ask(server.address, b"set kept 0 0 2\r\nme\r\n") == b"STORED\r\n"
        server.signal(signal.SIGUSR1)
        assert server.wait() == 0
        assert ask(front(*flags).address, b"get kept\r\n", end=b"END\r\n") == b"VALUE kept 0 2\r\nme\r\nEND\r\n"
    finally:
        for path in pathlib.Path("/dev/shm").glob(f"{directory.name}*"):
            path.unlink()


# --- the debug build's clock

def test_the_clock_can_be_moved_for_tests_of_expiry(front):
    server = front("-o", "egret_debugtime")
    said = ask(server.address, b"set short 0 100 1\r\nx\r\nset long 0 1000 1\r\nx\r\nset kept 0 0 1\r\nx\r\ndebugtime 99\r\nmg short\r\n"
               b"debugtime 10\r\nmg short\r\nmg long t\r\nset later 0 100 1\r\nx\r\ndebugtime 50\r\nmg later\r\ndebugtime 841\r\nmg long\r\nmg kept\r\nmn\r\n",
               end=b"MN\r\n")
    said = re.sub(rb"t89\d", b"t89#", said)
    assert said == (b"STORED\r\n" * 3 + b"OK\r\nHD\r\nOK\r\nEN\r\nHD t89#\r\nSTORED\r\nOK\r\nHD\r\nOK\r\nEN\r\nHD\r\nMN\r\n")
    for wrong in (b"debugtime", b"debugtime x", b"debugtime -5", b"debugtime 99999999999999999999", b"debugtime 9999999999"):
        assert ask(server.address, wrong + b"\r\n") == b"ERROR\r\n"


def test_the_clock_cannot_be_moved_otherwise(front):
    server = front()
    assert ask(server.address, b"set short 0 100 1\r\nx\r\ndebugtime 200\r\nmg short\r\nmn\r\n", end=b"MN\r\n") == b"STORED\r\nERROR\r\nHD\r\nMN\r\n"
