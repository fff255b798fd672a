"""SIGHUP: every row of both option tables, one by one. What the table says of it is what happens: `reload`, and a change
takes effect while clients go on; `restart`, and a line says so while everything stays as it was."""

import contextlib
import os
import re
import signal
import socket
import ssl
import subprocess
import time
import urllib.request

import pytest

import servers
import tls
from configured import Configured
from servers import ask, connect, stats_of, wait_for

pytestmark = pytest.mark.skipif(servers.SUT != "egret", reason="memcached reads no configuration")
BIG = 3000  # bytes of a value that several fetch sizes are too small for


def table(name):
    """The rows of a daemon's table: option → what applies it."""
    text = subprocess.run([servers.egret_binary(name), "--help-markdown"], capture_output=True, text=True, check=True).stdout
    rows = re.findall(r"^\| `(\w+)` \| .*? \| (reload|restart) \| ", text, re.M)
    assert len(rows) == text.count("\n") - 2, text
    return dict(rows)


@contextlib.contextmanager
def served(address, line=b"mn\r\n"):
    """A client that the proxy has answered already."""
    with connect(address) as client:
        client.sendall(line)
        assert client.recv(100)
        yield client


@contextlib.contextmanager
def stopped(daemon):
    """It stands still."""
    try:
        daemon.halt()
        yield
    finally:
        daemon.signal(signal.SIGCONT)


class System:
    """Both daemons, the proxy on a loopback port and on a Unix socket."""

    def __init__(self, directory, backend=None, proxy=None):
        self.directory = directory
        self.where = f"shm:{directory}/backend.sock"
        self.address = ("127.0.0.1", servers.free_port())
        self.unix_path = f"{directory}/clients.sock"
        self.backend = Configured(directory, "egret-backend", {"listen": f"[{self.where}]", "memory": "64MiB", "populate": "false",
                                                               "partitions": 1, "admin": "", **(backend or {})})
        self.listen = ["tcp:%s:%d" % self.address, f"unix:{self.unix_path}"]
        self.proxy = Configured(directory, "egret-proxy", {"listen": self.listed(*self.listen), "backends": f"['{self.where}']",
                                                           "workers": 2, "admin": "", **(proxy or {})})
        self.wait_until_served()

    @staticmethod
    def listed(*values):
        return "[" + ", ".join(f"'{value}'" for value in values) + "]"

    def wait_until_served(self):
        def serves():
            try:
                return all(ask(self.unix_path, b"get ready\r\n").endswith(b"END\r\n") for _ in range(4))
            except OSError:
                return False
        wait_for(serves, "the proxy to serve")

    def renew_backend(self):
        """All sessions are new afterwards."""
        self.backend.daemon.stop()
        self.backend.restart()
        self.wait_until_served()

    def settings(self):
        return stats_of(self.unix_path, b"settings")

    def stop(self):
        for daemon in self.proxy, self.backend:
            daemon.daemon.stop()
            assert "Sanitizer" not in daemon.log(), daemon.log()


@pytest.fixture
def system(tmp_path_factory):
    with contextlib.ExitStack() as started:
        def start(backend=None, proxy=None):
            found = System(servers.scratch_directory(), backend, proxy)
            started.callback(found.stop)
            return found
        yield start


# --- egret-proxy: option → what shows that a change has taken effect. Each starts its own system.

def setting(option, row, value, expected, **proxy):
    """`stats settings` says so."""
    def prove(start):
        system = start(proxy=proxy)
        assert system.settings()[row] != expected
        system.proxy.changed(**{option: value})
        wait_for(lambda: system.settings()[row] == expected, f"{row} {expected}")
    return prove


def answer(option, value, request, expected, before=None, **proxy):
    """A client that was there before is answered otherwise."""
    def prove(start):
        system = start(proxy={**proxy, **({option: before} if before else {})})
        with connect(system.address) as client:
            def says():
                client.sendall(request)
                return client.recv(65536)
            assert not says().startswith(expected)
            system.proxy.changed(**{option: value})
            wait_for(lambda: says().startswith(expected), f"{expected} for {request}")
    return prove


def said(option, value, **proxy):
    """Of what shows in figures only: that it was applied. Units show the rest."""
    def prove(start):
        start(proxy=proxy).proxy.changed(**{option: value})
    return prove


def metric(system, name):
    text = urllib.request.urlopen(f"http://{system.proxy.options['admin']}/metrics").read().decode()
    return float(re.search(rf"^{name} (\S+)$", text, re.M)[1])


def at_rest(system, name):
    """The metric's value when it does not change any more."""
    seen = []

    def is_at_rest():
        seen.append(metric(system, name))
        return seen[-1] > 0 and len(seen) > 10 and len(set(seen[-10:])) == 1
    wait_for(is_at_rest, f"{name} to rest", step=0.03)
    return seen[-1]


def ask_without_reading(address, request):
    client = connect(address)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        client.sendall(request)
    return client


def prove_large_value_memory(start):
    """Who waits for memory goes on when there is more, although nobody has given any back."""
    system = start(proxy={"workers": 1, "large_value_memory": "1MiB", "admin": f"127.0.0.1:{servers.free_port()}"})
    value = b"v" * 900_000
    assert ask(system.address, b"set large 0 0 %d\r\n%s\r\n" % (len(value), value)) == b"STORED\r\n"
    answer = b"VALUE large 0 %d\r\n%s\r\nEND\r\n" % (len(value), value)
    with ask_without_reading(system.address, b"get large\r\n" * 50), connect(system.address) as waits:
        at_rest(system, "egret_proxy_sent_bytes_total")
        waits.sendall(b"get large\r\n")
        ask(system.address, b"mn\r\n")
        system.proxy.changed(large_value_memory="64MiB")
        assert waits.makefile("rb").read(len(answer)) == answer
        assert metric(system, "egret_proxy_stalled_readers_total") == 0, "nobody had to go for it"


def prove_client_memory(option, small, clients):
    """Connections that hold as much as they may are read on when they may hold more, although no client reads anything."""
    def prove(start):
        system = start(proxy={"workers": 1, option: small, "admin": f"127.0.0.1:{servers.free_port()}"})
        value = b"v" * 1_000  # small: a connection rests at one large value, whatever the limits
        assert ask(system.address, b"set medium 0 0 %d\r\n%s\r\n" % (len(value), value)) == b"STORED\r\n"
        with contextlib.ExitStack() as stack:
            for _ in range(clients):
                stack.enter_context(ask_without_reading(system.address, b"get medium\r\n" * 10_000))
            before = at_rest(system, "egret_proxy_client_memory_bytes")
            system.proxy.changed(**{option: "64MiB"})
            wait_for(lambda: metric(system, "egret_proxy_client_memory_bytes") > 1.5 * before, "more to be read")
    return prove


def prove_admin_hosts(name):
    """A name is served from now on, and not before."""
    def prove(start):
        where = "127.0.0.1:%d" % servers.free_port()
        daemon = getattr(start(**{name: {"admin": where}}), name)
        host, port = where.split(":")
        def status():
            return ask((host, int(port)), b"GET /readyz HTTP/1.0\r\nHost: metrics.example\r\n\r\n", end=b"nothing ends it").split()[1]
        assert status() == b"403"
        daemon.changed(admin_hosts="['metrics.example']")
        wait_for(lambda: status() == b"200", "the name to be served")
    return prove


def prove_listen(start):
    system = start()
    other = ("127.0.0.1", servers.free_port())
    with served(system.address) as early:
        system.proxy.changed(listen=system.listed("tcp:%s:%d" % other, system.listen[1]))
        assert ask(other, b"mn\r\n") == b"MN\r\n"
        with pytest.raises(ConnectionRefusedError):
            connect(system.address)
        early.sendall(b"mn\r\n")
        assert early.recv(64) == b"MN\r\n"
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        text = system.proxy.hup(listen=system.listed("tcp:127.0.0.1:%d" % servers.free_port(), "tcp:%s:%d" % taken.getsockname()))
        assert re.search(r"reload refused.*egret-proxy.yaml:1: listen: cannot listen on tcp:127.0.0.1:\d+: Address already in use", text)
    assert ask(other, b"mn\r\n") == b"MN\r\n"
    assert ask(system.unix_path, b"mn\r\n") == b"MN\r\n"


def prove_unix_mode(start):
    system = start()
    assert os.stat(system.unix_path).st_mode & 0o777 == 0o700
    system.proxy.changed(unix_mode="0751")
    assert os.stat(system.unix_path).st_mode & 0o777 == 0o751


def prove_secret(start):
    system = start()
    secret = system.directory / "secret"
    secret.write_bytes(b"0123456789abcdef")
    secret.chmod(0o400)
    system.proxy.changed(secret_file=secret)
    system.backend.changed(secret_file=secret)
    system.renew_backend()  # which serves only who holds it
    assert ask(system.address, b"get k\r\n") == b"END\r\n"


def prove_max_connections(start):
    system = start(proxy={"maxconns_fast": "true"})
    with served(system.address) as first:
        system.proxy.changed(max_connections=1)
        with connect(system.address) as second:
            assert second.recv(100) == b"ERROR Too many open connections\r\n"
        first.sendall(b"mn\r\n")
        assert first.recv(100) == b"MN\r\n"
        system.proxy.changed(max_connections=2)
        assert ask(system.address, b"mn\r\n") == b"MN\r\n"


def prove_maxconns_fast(start):
    system = start(proxy={"maxconns_fast": "false", "max_connections": 1})
    def is_one_there():
        return re.search(r"^STAT curr_connections 1\r$", ask(system.address, b"stats\r\n", end=b"END\r\n").decode(), re.M)
    wait_for(is_one_there, "no client but us")
    with connect(system.address) as first, connect(system.address) as second:
        first.sendall(b"mn\r\n")
        assert first.recv(100) == b"MN\r\n"
        second.sendall(b"mn\r\n")  # and waits
        system.proxy.changed(maxconns_fast="true")
        assert second.recv(100).startswith(b"ERROR Too many open connections")


def prove_idle_timeout(start):
    system = start()
    with connect(system.address) as idle:
        idle.sendall(b"mn\r\n")
        assert idle.recv(100) == b"MN\r\n"
        system.proxy.changed(idle_timeout="300ms")
        assert idle.recv(100) == b""


def prove_drain(start):
    system = start(proxy={"drain": "1h"})
    with stopped(system.backend.daemon), served(system.address) as client:
        client.sendall(b"get k\r\n")
        system.proxy.changed(drain="50ms")
        system.proxy.daemon.signal(signal.SIGTERM)
        assert system.proxy.daemon.wait() == 0  # though nobody has answered


def prove_backlog(start):
    system = start(proxy={"backlog": 7})
    def backlog():
        found = subprocess.run(["ss", "-ltnH", f"sport = :{system.address[1]}"], capture_output=True, text=True, check=True)
        return int(found.stdout.split()[2])
    assert backlog() == 7
    system.proxy.changed(backlog=9)
    assert backlog() == 9


def prove_protocol(start):
    system = start()
    with served(system.address) as early:
        system.proxy.changed(protocol="binary")
        early.sendall(b"mn\r\n")
        assert early.recv(100) == b"MN\r\n"
    def is_refused():
        with connect(system.address) as late:
            late.sendall(b"mn\r\n" + b"x" * 24)
            return not late.recv(100).startswith(b"MN")
    wait_for(is_refused, "text to be refused")


def prove_auth_file(start):
    system = start()
    users = system.directory / "users"
    users.write_text("anna:secret\n")
    login = b"set auth 0 0 11\r\nanna secret\r\n"
    with served(system.address) as early:
        system.proxy.changed(auth_file=users)
        early.sendall(b"mn\r\n")
        assert early.recv(100) == b"MN\r\n"
    wait_for(lambda: ask(system.address, b"mn again\r\n") == b"CLIENT_ERROR unauthenticated\r\n", "newcomers to be unknown")
    assert ask(system.address, login) == b"STORED\r\n"
    with served(system.address, b"set auth 0 0 1\r\nx\r\n") as waiting:  # to say who it is, when that is no longer asked
        system.proxy.changed(auth_file="")
        wait_for(lambda: ask(system.address, b"mn\r\n") == b"MN\r\n", "everybody to be served")
        waiting.sendall(login)
        assert waiting.recv(100) == b"STORED\r\n"


def prove_users_file(start):
    system = start()
    users = system.directory / "users.yaml"
    hashed = subprocess.run(["openssl", "passwd", "-6", "-stdin"], input="secret\n", capture_output=True, text=True, check=True).stdout.strip()
    users.write_text(f'anna:\n  password: "{hashed}"\n  rights: [read]\n')
    system.proxy.changed(users_file=users)
    wait_for(lambda: ask(system.address, b"mn again\r\n") == b"CLIENT_ERROR unauthenticated\r\n", "newcomers to be unknown")
    with connect(system.address) as client:
        client.sendall(b"set auth 0 0 11\r\nanna secret\r\n")
        assert client.recv(100) == b"STORED\r\n"
        client.sendall(b"delete k\r\n")
        assert client.recv(100) == b"CLIENT_ERROR not allowed\r\n"
        system.proxy.changed(users_file="")
        def deletes():
            client.sendall(b"delete k\r\n")
            return client.recv(100) == b"NOT_FOUND\r\n"
        wait_for(deletes, "everybody to be served")


def prove_guess_pace(option, value):
    """A client that has guessed too often is answered when the new pace lets it."""
    def prove(start):
        system = start(proxy={"auth_guesses": 1, "auth_guess_interval": "1h"})
        users = system.directory / "users"
        users.write_text("anna:secret\n")
        system.proxy.changed(auth_file=users)
        wrong = b"CLIENT_ERROR authentication failure\r\n"
        with connect(system.address) as client:
            client.sendall(b"set auth 0 0 9\r\nanna nope\r\n" * 2)
            answers = client.recv(len(wrong))
            system.proxy.changed(**{option: value})
            while len(answers) < 2 * len(wrong):
                answers += client.recv(100)
            assert answers == wrong * 2
    return prove


def prove_op_timeout(start):
    system = start(proxy={"op_timeout": "1h"})
    with stopped(system.backend.daemon), connect(system.address) as client:
        client.sendall(b"get k\r\n")
        system.proxy.changed(op_timeout="100ms")
        assert client.recv(100).startswith(b"SERVER_ERROR")


def prove_reconnect_max(start):
    system = start(proxy={"reconnect_max": "1h"})
    system.backend.daemon.stop()
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as nobody:
        nobody.bind(str(system.directory / "backend.sock"))
        nobody.listen()
        nobody.settimeout(20 * servers.SLACK)
        system.proxy.changed(reconnect_max="10ms")
        for _ in range(50):  # two workers: with pauses that double, this many would take an hour
            nobody.accept()[0].close()


def is_ejected(system):
    return stats_of(system.unix_path, b"egret")["backend:0:ejected"] == "1"


def prove_eject_after(start):
    """One request in vain is not enough before, and is afterwards: not only when the session is given up."""
    system = start(proxy={"eject_after": 1000, "eject_share": 100, "op_timeout": "5s"})
    with stopped(system.backend.daemon):
        assert ask(system.address, b"get k\r\n", timeout=60).startswith(b"SERVER_ERROR")
        assert not is_ejected(system)
        system.proxy.changed(eject_after=1)
        wait_for(lambda: is_ejected(system), "the verdict")
        assert "[session_lost]" not in system.proxy.daemon.log(1 << 20)


def prove_eject_share(start):
    system = start(proxy={"eject_share": 0})
    system.backend.daemon.stop()
    wait_for(lambda: "[no_session]" in system.proxy.daemon.log(1 << 20), "the proxy to try in vain")
    assert not is_ejected(system)
    system.proxy.changed(eject_share=100)
    wait_for(lambda: is_ejected(system), "the verdict")


def spare(system):
    """Another backend, for the gutter: its address."""
    directory = system.directory
    address = servers.new_backend_address(directory, "spare")
    system.spare = servers.Daemon(servers.Egret.argv("egret-backend", {"listen": address, "admin": "", "memory": "256MiB", "partitions": 2}),
                                  directory, "egret-spare")
    return address


def prove_failover(start):
    """An ejected backend's keys fail before, and are taken by the gutter afterwards, for as long as it says; and fail again without it."""
    system = start(proxy={"eject_share": 100})
    address = spare(system)
    try:
        system.backend.daemon.stop()
        wait_for(lambda: is_ejected(system), "the verdict")
        assert ask(system.address, b"get k\r\n").startswith(b"SERVER_ERROR")
        system.proxy.changed(failover="gutter", gutter=f"[{address}]")
        wait_for(lambda: ask(system.address, b"set k 0 0 1\r\nv\r\n") == b"STORED\r\n", "the gutter")
        assert ask(system.address, b"mg k t\r\n").startswith(b"HD t")
        assert 50 < int(ask(system.address, b"mg k t\r\n")[4:]) <= 60
        system.proxy.changed(gutter_ttl="10s")
        ask(system.address, b"set k 0 0 1\r\nv\r\n")
        assert int(ask(system.address, b"mg k t\r\n")[4:]) <= 10
        system.proxy.changed(failover="none")
        wait_for(lambda: ask(system.address, b"get k\r\n").startswith(b"SERVER_ERROR"), "keys to fail")
    finally:
        system.spare.stop()


def counted(system, name):
    """A counter of a proxy whose admin address has any port."""
    address = re.search(r"admin address: (\S+)", system.proxy.log())[1]
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=30 * servers.SLACK) as answer:
        return int(re.search(rf"^{name} (\d+)", answer.read().decode(), re.M)[1])


def prove_purge_moved(start):
    """Backends are told of a change of the pool, or not."""
    system = start(proxy={"admin": "127.0.0.1:0", "purge_moved": "true"})
    told = lambda: counted(system, "egret_proxy_members_told_total")

    def change(name):
        system.proxy.changed(backends=f"['{system.where}', 'shm:/{name}.sock name={name} weight=1']")
        wait_for(lambda: name in stats_of(system.unix_path, b"egret").get("backend:1:name", ""), "two members")
    wait_for(lambda: told() == 1, "the start")
    system.proxy.changed(purge_moved="false")
    change("one")
    assert told() == 1
    system.proxy.changed(purge_moved="true")
    wait_for(lambda: told() == 2, "to be told to whom it belongs")
    change("two")
    assert told() == 3


def prove_warm_for(start):
    """It counts from the next change of members on."""
    system = start(proxy={"admin": "127.0.0.1:0", "warm_for": "0"})
    log = system.proxy.log
    system.proxy.changed(backends=f"['{system.where} weight=2']")
    wait_for(lambda: counted(system, "egret_proxy_pool_changes_total") == 1, "the change to be over: the backend is told of it first")
    system.proxy.changed(warm_for="50s")
    assert "[warm_begun]" not in log()
    system.proxy.changed(backends=f"['{system.where} weight=3']")
    wait_for(lambda: "[warm_begun]" in log(), "a warm change")


def lane(system, row):
    return {value for name, value in stats_of(system.unix_path, b"egret").items() if name.endswith(":" + row)}


def fetch_size(start, option, value, expected, **proxy):
    system = start(proxy=proxy)
    assert ask(system.address, b"set big 0 0 %d\r\n" % BIG + b"x" * BIG + b"\r\n") == b"STORED\r\n"
    before = lane(system, "fetch_size")
    system.proxy.changed(**{option: value})
    for _ in range(64):
        with connect(system.address) as client:
            client.sendall(b"get big\r\nmn\r\n" * 8)
            seen = b""
            while seen.count(b"MN\r\n") < 8:
                seen += client.recv(65536)
    assert lane(system, "fetch_size") == {expected} != before


def prove_fetch_mode(start):
    system = start(proxy={"fetch_mode": "fetch"})
    assert lane(system, "mode") == {"fetch"}
    system.proxy.changed(fetch_mode="reply")
    wait_for(lambda: lane(system, "mode") == {"reply"}, "lanes to ask with every request")
    assert ask(system.address, b"get k\r\n") == b"END\r\n"
    system.proxy.changed(fetch_mode="fetch")
    wait_for(lambda: lane(system, "mode") == {"fetch"}, "lanes to fetch")
    assert ask(system.address, b"get k\r\n") == b"END\r\n"


def prove_window(start):
    system = start()
    system.proxy.changed(window=16)
    before = len(system.proxy.log())
    system.renew_backend()
    assert "lane x 16 slots" in system.proxy.log()[before:]


def prove_slot_size(option, expected):
    """A session that is made from now on has such slots."""
    def prove(start):
        system = start()
        system.proxy.changed(**{option: 2048})
        before = len(system.proxy.log())
        system.renew_backend()
        assert re.search(expected, system.proxy.log()[before:]), system.proxy.log()[before:]
    return prove


def prove_session_memory(start):
    """A session of more than 1 MiB, as the backend makes it, is refused from the next one on."""
    system = start()
    system.proxy.changed(session_memory="1MiB")
    system.backend.daemon.stop()
    system.backend.restart()
    wait_for(lambda: "more than session_memory allows: 1048576 bytes" in system.proxy.log(), "the refusal")


def prove_log_level(start):
    for name, needs_restart in ("proxy", "workers"), ("backend", "partitions"):
        daemon = getattr(start(), name)
        before = len(daemon.log())
        was = daemon.options[needs_restart]
        daemon.options.update({"log_level": "warning", needs_restart: 5})
        daemon.write()
        daemon.daemon.signal(signal.SIGHUP)
        wait_for(lambda: f"warning: reload: {needs_restart} takes effect" in daemon.log()[before:], "the warning")
        text = daemon.hup(log_level="info", **{needs_restart: was})
        assert "reloaded: changed: log_level" in text
        assert daemon.log()[before:].count("info: reloaded") == 1  # the first one was not told


class Tls:
    """A proxy that speaks TLS, and files for it."""

    def __init__(self, start, **proxy):
        self.folder = servers.scratch_directory()
        self.authority = tls.Authority(self.folder, "authority")
        self.certificate, self.key = self.authority.issue("one", serial=2001)
        self.address = ("127.0.0.1", servers.free_port())
        options = {"tls_certificate": self.certificate, "tls_key": self.key, **proxy}
        self.system = start(proxy=options)
        self.system.proxy.changed(listen=System.listed(*self.system.listen, "tls:%s:%d" % self.address))

    def speak(self, certificate=None, most=None):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        if certificate:
            context.load_cert_chain(*certificate)
        if most:
            context.maximum_version = most
        with socket.create_connection(self.address, 10 * servers.SLACK) as raw, context.wrap_socket(raw) as sock:
            sock.sendall(b"mn\r\n")
            assert sock.recv(100) == b"MN\r\n"
            return ssl.DER_cert_to_PEM_cert(sock.getpeercert(binary_form=True)), sock.cipher()

    def refuses(self, **arguments):
        try:
            self.speak(**arguments)
        except (OSError, AssertionError):
            return True
        return False


def prove_tls_files(start):
    proxy = Tls(start)
    first = proxy.speak()[0]
    certificate, key = proxy.authority.issue("two", serial=2002)
    text = proxy.system.proxy.hup(tls_certificate=certificate)
    assert re.search(r"reload refused, .*egret-proxy.yaml:\d+: tls_key: .*the key belongs to another certificate", text), text
    assert proxy.speak()[0] == first
    text = proxy.system.proxy.hup(tls_key=key)
    assert "reloaded: changed: tls_certificate, tls_key" in text
    assert proxy.speak()[0] != first


def prove_tls_clients(start):
    proxy = Tls(start)
    ca = proxy.folder / "clients.pem"
    ca.write_bytes(proxy.authority.pem)
    text = proxy.system.proxy.hup(tls_ca_certificate=ca, tls_verify="require")
    assert "reloaded: changed: tls_ca_certificate, tls_verify" in text
    assert proxy.refuses()
    proxy.speak(certificate=proxy.authority.issue("client"))


def prove_tls_min_version(start):
    proxy = Tls(start)
    proxy.speak(most=ssl.TLSVersion.TLSv1_2)
    proxy.system.proxy.changed(tls_min_version="1.3")
    assert proxy.refuses(most=ssl.TLSVersion.TLSv1_2)
    proxy.speak()


def prove_tls_ciphers(start):
    proxy = Tls(start)
    proxy.system.proxy.changed(tls_ciphers="ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305")
    assert "CHACHA20" in proxy.speak(most=ssl.TLSVersion.TLSv1_2)[1][0]


def prove_backends(start):
    """Another list of backends, while a client is connected; one that cannot be a pool is refused."""
    system = start()
    with connect(system.address) as client:
        def answers():
            client.sendall(b"get k\r\n")
            return client.recv(65536)
        client.sendall(b"set k 0 0 1\r\nv\r\n")
        assert client.recv(100) == b"STORED\r\n"
        system.proxy.changed(backends="['shm:/nowhere.sock']")
        wait_for(lambda: answers() == b"SERVER_ERROR backend unavailable\r\n", "the key to belong to another backend")
        system.proxy.changed(backends=f"['{system.where} weight=7']")
        wait_for(lambda: answers() == b"VALUE k 0 1\r\nv\r\nEND\r\n", "the key to be back")
        text = system.proxy.hup(backends=f"['{system.where}', '{system.where}']")
        assert re.search(r"reload refused, .*backends: two of them are named ", text), text
        assert answers() == b"VALUE k 0 1\r\nv\r\nEND\r\n"


def prove_placement(start):
    """Keys are elsewhere: a backend that is not there gets others of them."""
    system = start()
    system.proxy.changed(backends=f"['{system.where} name=here', 'shm:/nowhere.sock name=there']")
    request = b"".join(b"mg key%d\r\n" % number for number in range(40)) + b"mn\r\n"

    def kinds():
        lines = ask(system.address, request, end=b"MN\r\n").split(b"\r\n")
        return [line.startswith(b"SERVER_ERROR") for line in lines[:40]]
    wait_for(lambda: 0 < sum(kinds()) < 40, "two members")
    by_ketama = kinds()
    system.proxy.changed(placement="rendezvous")
    wait_for(lambda: kinds() != by_ketama and 0 < sum(kinds()) < 40, "other keys to fail")


def renamed_into(path, *lines):
    whole = path.with_suffix(".new")
    whole.write_text("".join(f"{line}\n" for line in lines))
    whole.rename(path)


def pool_of(system):
    return int(stats_of(system.address)["egret_backends"])


def prove_backends_file(start):
    """Its backends come besides those of the list; a change of it needs no reload."""
    system = start()
    path = system.directory / "backends"
    renamed_into(path, "# two more", "shm:/nowhere.sock name=there", "", "shm:/elsewhere.sock weight=2")
    system.proxy.changed(backends_file=path)
    wait_for(lambda: pool_of(system) == 3, "the file's backends")
    renamed_into(path, "shm:/nowhere.sock name=there", "shm:/elsewhere.sock", "shm:/third.sock")
    wait_for(lambda: pool_of(system) == 4, "one more")
    system.proxy.changed(backends_file="")
    wait_for(lambda: pool_of(system) == 1, "the list alone")


def prove_backends_file_copy(start):
    system = start()
    path = system.directory / "backends"
    renamed_into(path, "shm:/nowhere.sock")
    copy = system.directory / "copy"
    system.proxy.hup(backends_file=path)
    wait_for((system.directory / "backends.good").exists, "the copy in its default place")
    system.proxy.changed(backends_file_copy=copy)
    wait_for(lambda: copy.exists() and "shm:/nowhere.sock" in copy.read_text(), "the copy")


def prove_backends_most_removed(start):
    system = start()
    path = system.directory / "backends"
    lines = [f"shm:/nowhere{number}.sock" for number in range(10)]
    renamed_into(path, *lines)
    system.proxy.hup(backends_file=path)
    wait_for(lambda: pool_of(system) == 11, "all of them")
    system.proxy.changed(backends_most_removed=10)
    renamed_into(path, *lines[2:])
    wait_for(lambda: "[members_unknown]" in system.proxy.log(), "the refusal")
    assert pool_of(system) == 11
    renamed_into(path, *lines[1:])
    wait_for(lambda: pool_of(system) == 10, "a tenth to go")


def prove_dns_servers(start):
    """The server that the option names is asked."""
    system = start()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        server.settimeout(20 * servers.SLACK)
        system.proxy.hup(backends=f"['{system.where}', 'dns+rdma:cache.example.:11311']", dns_servers="['127.0.0.1:9']")
        system.proxy.changed(dns_servers="['127.0.0.1:%d']" % server.getsockname()[1])
        assert b"\x05cache\x07example\x00" in server.recv(600)
    text = system.proxy.hup(dns_servers="[nobody]")
    assert re.search(r"reload refused, .*dns_servers: ", text), text


def prove_ready_share(start):
    """One of two backends is up: half of them are enough, then they are not."""
    port = servers.free_port()
    system = start(proxy={"admin": f"127.0.0.1:{port}"})

    def status():
        return ask(("127.0.0.1", port), b"GET /readyz/share HTTP/1.0\r\nHost: localhost\r\n\r\n", end=b"nothing ends it").split()[1]
    system.proxy.changed(backends=f"['{system.where} name=here', 'shm:/nowhere.sock name=there']")
    wait_for(lambda: b"there" in ask(("127.0.0.1", port), b"GET /readyz HTTP/1.0\r\nHost: localhost\r\n\r\n", end=b"nothing ends it"), "both members")
    assert status() == b"200"
    system.proxy.changed(ready_share=51)
    assert status() == b"503"


def prove_cluster(start):
    """This proxy, then the list; its version grows with each change, so that clients take it for new."""
    system = start()

    def asked():
        answer = ask(system.address, b"config get cluster\r\n", b"END\r\n")
        head, text = answer.split(b"\r\n", 1)
        assert head == b"CONFIG cluster 0 %d" % (len(text) - len(b"\r\nEND\r\n")), answer
        version, nodes, rest = text.split(b"\n", 2)
        assert rest == b"\r\nEND\r\n", answer
        return int(version), nodes.decode()
    first, own = asked()
    assert own == "127.0.0.1|127.0.0.1|%d" % system.address[1]
    assert ask(system.unix_path, b"config get cluster\r\n").startswith(b"SERVER_ERROR ")
    assert ask(system.address, b"config get other\r\n") == b"ERROR\r\n"
    system.proxy.changed(cluster="['cache1.example:11211', 'cache2.example|10.0.0.2|11212', '[::1]:11213']")
    second, nodes = asked()
    assert nodes == "cache1.example||11211 cache2.example|10.0.0.2|11212 ::1|::1|11213"
    assert second > first
    system.proxy.changed(idle_timeout="1h")
    assert asked() == (second, nodes), "the list is the same"
    text = system.proxy.hup(cluster="['cache1.example']")
    assert re.search(r"reload refused, .*cluster: expected HOST:PORT", text), text


class SessionTls:
    """A backend at a tcp: address, too, and a proxy that comes there with certificates. One of the options is wrong at first."""

    def __init__(self, start, backend=None, proxy=None):
        folder = servers.scratch_directory()
        self.authority, self.strange = tls.Authority(folder / "good"), tls.Authority(folder / "strange", "strange")
        self.system = start()
        self.where = f"tcp:127.0.0.1:{servers.free_port()}"
        good = {side: self.files(self.authority, side) for side in ("backend", "proxy")}
        bad = {"session_tls_certificate": self.files(self.strange, "other"), "session_tls_ca": {"session_tls_ca": self.strange.path},
               "session_tls_names": {"session_tls_names": "['nobody.example']"}, "plain": {}}
        self.good, self.backend = good, self.system.backend
        self.backend.changed(listen=System.listed(self.system.where, self.where), **self.ordered(good["backend"], bad.get(backend)))
        options = {} if proxy == "plain" else self.ordered(good["proxy"], bad.get(proxy))
        self.proxy = Configured(folder, "egret-proxy", {"listen": f"['tcp:127.0.0.1:{servers.free_port()}']", "backends": f"['{self.where}']",
                                                        "admin": "", "workers": 1, "reconnect_max": "50ms", **options})
        wait_for(lambda: "TLS" in self.proxy.log(), "the proxy to be turned away")
        assert not self.serves()

    @staticmethod
    def files(authority, name):
        certificate, key = authority.issue(name, addresses=["127.0.0.1"])
        return {"session_tls_certificate": certificate, "session_tls_key": key, "session_tls_ca": authority.path}

    @staticmethod
    def ordered(good, bad):
        """As the table has them."""
        if bad and "session_tls_certificate" in bad:
            bad = {**bad, "session_tls_ca": good["session_tls_ca"]}
        return {**good, **(bad or {})}

    def serves(self):
        try:
            return ask(("127.0.0.1", int(re.search(r":(\d+)'", self.proxy.options["listen"])[1])), b"get k\r\n") == b"END\r\n"
        except OSError:
            return False

    def right(self, side, *options):
        getattr(self, side).changed(**{option: {**self.good[side], "session_tls_names": "['127.0.0.1']", "session_tls_required": "false"}[option] for option in options})
        wait_for(self.serves, "the proxy to be served")
        self.proxy.daemon.stop()


def prove_session_tls(side, *options, wrong=None):
    """Sessions from then on go by it."""
    def prove(start):
        what = wrong or options[0]
        SessionTls(start, **{"proxy" if what == "plain" else side: what}).right(side, *options)
    return prove


PROXY = {
    "listen": prove_listen,
    "admin_hosts": prove_admin_hosts("proxy"),
    "unix_mode": prove_unix_mode,
    "secret_file": prove_secret,
    "session_tls_certificate": prove_session_tls("proxy", "session_tls_certificate", "session_tls_key"),
    "session_tls_key": prove_session_tls("proxy", "session_tls_certificate", "session_tls_key"),
    "session_tls_ca": prove_session_tls("proxy", "session_tls_ca"),
    "session_tls_names": prove_session_tls("proxy", "session_tls_names"),
    "max_connections": prove_max_connections,
    "backlog": prove_backlog,
    "maxconns_fast": prove_maxconns_fast,
    "idle_timeout": prove_idle_timeout,
    "drain": prove_drain,
    "backends": prove_backends,
    "backends_file": prove_backends_file,
    "backends_file_copy": prove_backends_file_copy,
    "backends_most_removed": prove_backends_most_removed,
    "dns_servers": prove_dns_servers,
    "placement": prove_placement,
    "tls_certificate": prove_tls_files,
    "tls_key": prove_tls_files,
    "tls_ca_certificate": prove_tls_clients,
    "tls_verify": prove_tls_clients,
    "tls_ciphers": prove_tls_ciphers,
    "tls_min_version": prove_tls_min_version,
    "tls_session_cache": setting("tls_session_cache", "ssl_session_cache", "true", "yes"),
    "protocol": prove_protocol,
    "auth_file": prove_auth_file,
    "users_file": prove_users_file,
    "auth_guesses": prove_guess_pace("auth_guesses", 2),
    "auth_guess_interval": prove_guess_pace("auth_guess_interval", "1ms"),
    "allow_flush": answer("allow_flush", "false", b"flush_all\r\n", b"CLIENT_ERROR flush_all not allowed"),
    "allow_watch": answer("allow_watch", "true", b"watch mutations\r\n", b"OK", before="false"),
    "allow_dump": answer("allow_dump", "false", b"lru_crawler metadump all\r\n", b"ERROR metadump not allowed"),
    "allow_shutdown": answer("allow_shutdown", "true", b"shutdown nonsense\r\n", b"CLIENT_ERROR invalid shutdown mode"),
    "slots": said("slots", "['none']"),  # what these ten do to whom they let in: tests/unit/proxy_slots_test.cc
    "slots_uids": said("slots_uids", "[33]"),
    "slots_gids": said("slots_gids", "[33]"),
    "slots_sessions": said("slots_sessions", 7),
    "slots_memory": said("slots_memory", "8MiB"),
    "slots_share": said("slots_share", 30),
    "slots_idle": said("slots_idle", "20us"),
    "slots_window": said("slots_window", 8),
    "slots_request_size": said("slots_request_size", "2KiB"),
    "slots_response_size": said("slots_response_size", "2KiB"),
    "window": prove_window,
    "request_slot_size": prove_slot_size("request_slot_size", r"slots of 2048 \+ 53248"),
    "response_slot_size": prove_slot_size("response_slot_size", r"slots of 16384 \+ 2048"),
    "idle_window": said("idle_window", 4),  # what sessions over a network do with these three: tests/rdma/fabric
    "idle_slot_size": said("idle_slot_size", "2KiB"),
    "give_back_after": said("give_back_after", "10s"),
    "backend_uids": said("backend_uids", "[33]"),
    "session_memory": prove_session_memory,
    "op_timeout": prove_op_timeout,
    "eject_after": prove_eject_after,
    "eject_share": prove_eject_share,
    "failover": prove_failover,
    "gutter": prove_failover,
    "gutter_ttl": prove_failover,
    "warm_for": prove_warm_for,
    "purge_moved": prove_purge_moved,
    "reconnect_max": prove_reconnect_max,
    "large_value_memory": prove_large_value_memory,
    "connection_memory": prove_client_memory("connection_memory", "64KiB", 1),
    "client_memory": prove_client_memory("client_memory", "1MiB", 12),
    "spin": said("spin", "5us"),
    "max_refetches": said("max_refetches", 7),
    "fetch_mode": prove_fetch_mode,
    "fetch_min": lambda start: fetch_size(start, "fetch_min", 2048, "2048", fetch_max=2048),
    "fetch_max": lambda start: fetch_size(start, "fetch_max", 512, "512"),
    "ack_timeout": said("ack_timeout", 18),  # what sessions over rdma do with these four: tests/rdma/fabric
    "tos": said("tos", 104),
    "gid_index": said("gid_index", 3),
    "pkey": said("pkey", "0x8001"),
    "main_pid": lambda start: prove_pid(start),
    "told_settings": setting("told_settings", "hash_algorithm", "['hash_algorithm=told']", "told"),
    "cluster": prove_cluster,
    "ready_share": prove_ready_share,
    "log_level": prove_log_level,
}
PROXY_RESTART = {"workers": 3, "sessions": "host", "pin": "on", "qps_per_session": 2, "log_format": "text"}


def prove_pid(start):
    system = start()
    system.proxy.changed(main_pid=4711)
    assert stats_of(system.address)["pid"] == "4711"


# --- egret-backend

def new_session(option, value, expected):
    """A proxy that connects from now on has such a session."""
    def prove(start):
        system = start()
        system.backend.changed(**{option: value})
        before = len(system.proxy.log())
        system.proxy.daemon.stop()
        system.proxy.restart()
        system.wait_until_served()
        assert re.search(r"session with .*: " + expected, system.proxy.log()), system.proxy.log()[before:]
    return prove


def refused_session(option, expected, **changes):
    """A proxy that connects from now on is refused, for that reason; those that are there stay."""
    def prove(start):
        system = start()
        if option in ("secret_file", "secret_files"):
            secret = system.directory / "secret"
            secret.write_bytes(b"0123456789abcdef")
            secret.chmod(0o400)
            changes[option] = secret if option == "secret_file" else f"['next={secret}']"
        system.backend.changed(**changes)
        late = Configured(system.directory, "egret-proxy", {"listen": "['tcp:127.0.0.1:0']", "backends": f"['{system.where}']"})
        try:
            wait_for(lambda: re.search("refused: .*" + expected, late.log()), expected)
        finally:
            late.daemon.stop()
        assert ask(system.address, b"get k\r\n") == b"END\r\n"
    return prove


def backend_said(option, value):
    def prove(start):
        system = start()
        system.backend.changed(**{option: value})
        assert ask(system.address, b"get k\r\n") == b"END\r\n"
    return prove


def prove_backend_listen(start):
    system = start()
    other = f"shm:{system.directory}/other.sock"
    system.backend.changed(listen=f"['{other}']")
    assert ask(system.address, b"get k\r\n") == b"END\r\n"  # its session stays
    assert not (system.directory / "backend.sock").exists()
    system.proxy.daemon.stop()
    system.proxy.options["backends"] = f"['{other}']"
    system.proxy.restart()
    system.wait_until_served()
    text = system.backend.hup(listen=f"['{other}', 'shm:/nonexistent/x.sock']")
    assert re.search(r"reload refused, .*egret-backend.yaml:1: listen: ", text), text
    assert ask(system.address, b"get k\r\n") == b"END\r\n"


def prove_memory(start):
    system = start()
    assert stats_of(system.address)["limit_maxbytes"] == str(64 << 20)
    system.backend.changed(memory="96MiB")
    wait_for(lambda: stats_of(system.address)["limit_maxbytes"] == str(96 << 20), "the new limit")
    system.backend.hup(memory="64GiB")  # more than can be had while it serves
    wait_for(lambda: "memory of 68719476736 bytes takes effect at a restart" in system.backend.log(), "the warning")
    assert stats_of(system.address)["limit_maxbytes"] == str(96 << 20)


@pytest.mark.parametrize("partitions", [1, 2])
def test_a_limit_that_a_client_has_set_is_logged_and_compared_at_a_reload(system, partitions):
    running = system(backend={"partitions": partitions})
    backend = running.backend
    backend.hup()
    assert "the memory limit stays" not in backend.log()
    assert ask(running.address, b"cache_memlimit 128\r\n") == b"OK\r\n"
    wait_for(lambda: "a client has set the memory limit to 134217728 bytes (cache_memlimit); it was 67108864" in backend.log(), "the line")
    backend.hup()
    stays = "warning: reload: the memory limit stays at 134217728 bytes, which a client has set (cache_memlimit); the option says 67108864"
    wait_for(lambda: stays in backend.log(), "the comparison")
    backend.changed(memory="96MiB")
    wait_for(lambda: stats_of(running.address)["limit_maxbytes"] == str(96 << 20), "the file's limit")
    backend.hup()
    assert backend.log().count("the memory limit stays") == 1


FORBIDDEN = b"SERVER_ERROR the backend does not allow this proxy to do that (its option rights)\r\n"


def prove_rights(start):
    """A proxy that connects from now on may do that much, and says of the rest why not."""
    system = start()
    assert ask(system.address, b"flush_all\r\n") == b"OK\r\n"
    system.backend.changed(rights=f"['uid={os.geteuid()}:read+write']")
    assert ask(system.address, b"flush_all\r\n") == b"OK\r\n", "the session that is open keeps what it was granted"
    system.proxy.daemon.stop()
    system.proxy.restart()
    system.wait_until_served()
    assert ask(system.address, b"set k 0 0 1\r\nv\r\n") == b"STORED\r\n"
    for refused in b"flush_all\r\n", b"stats reset\r\n", b"cache_memlimit 128\r\n":
        assert ask(system.address, refused) == FORBIDDEN, refused
    ask(system.address, b"lru_crawler metadump all\r\n", end=FORBIDDEN)
    with connect(system.address) as client, client.makefile("rb") as lines:
        client.sendall(b"watch evictions fetchers\r\n")
        assert lines.readline() == b"OK\r\n"
        assert re.fullmatch(rb"ts=[\d.]+ gid=\d+ type=evictions_forbidden backend=shm\S+\n", lines.readline()), "told at once, and once"
        time.sleep(0.2)  # several polls
        ask(system.address, b"get watched\r\n")
        assert b" type=item_get key=watched " in lines.readline()
    with connect(system.address) as client:
        client.sendall(bytes([0x80, 0x08]) + bytes(22))
        flush = client.recv(100)
    assert flush[:2] == b"\x81\x08" and flush[6:8] == b"\x00\x20", "binary: no right to it"
    assert ask(system.address, b"get k\r\n") == b"VALUE k 0 1\r\nv\r\nEND\r\n"
    assert "rights read+write" in system.proxy.log() and "rights read+write" in system.backend.log()


def prove_allowed(option, become):
    return lambda start: prove_allowed_peer(start, option, become)


def prove_allowed_peer(start, option, become):
    if os.geteuid() != 0:
        pytest.skip("needs root, to be somebody else")
    system = start()
    system.directory.chmod(0o755)
    (system.directory / "backend.sock").chmod(0o777)
    script = (f"import os, socket, sys\n{become}\nos.setuid(65534)\nsock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)\n"
              "sock.settimeout(2)\nsock.connect(sys.argv[1])\n"
              "try:\n    sys.exit(0 if sock.recv(1) else 1)\nexcept TimeoutError:\n    sys.exit(2)\n")
    def outcome():  # 1: turned away; 2: it may speak
        return subprocess.run(["/usr/bin/python3", "-c", script, str(system.directory / "backend.sock")]).returncode
    assert outcome() == 1
    system.backend.changed(**{option: "['65534']"})
    assert outcome() == 2


BACKEND = {
    "listen": prove_backend_listen,
    "admin_hosts": prove_admin_hosts("backend"),
    "memory": prove_memory,
    "window": new_session("window", 8, "1 lane x 8 slots"),
    "request_slot_size": new_session("request_slot_size", 8192, r"1 lane x \d+ slots of 8192 \+ 53248"),
    "response_slot_size": new_session("response_slot_size", 8192, r"1 lane x \d+ slots of 16384 \+ 8192"),
    "session_memory": new_session("session_memory", "64KiB", "1 lane x 7 slots"),
    "session_memory_total": refused_session("session_memory_total", "session_memory_total = ", session_memory_total="64KiB"),
    "push_below_load": backend_said("push_below_load", 50),  # what results over a network do with these two: tests/rdma/counts
    "push_above_sessions": backend_said("push_above_sessions", 100),
    "max_sessions": refused_session("max_sessions", "max_sessions = 1", max_sessions=1),
    "sessions_per_peer": refused_session("sessions_per_peer", "sessions_per_peer = 1", sessions_per_peer=1),
    "secret_file": refused_session("secret_file", "this backend serves only proxies that hold its secret"),
    "session_tls_certificate": prove_session_tls("backend", "session_tls_certificate", "session_tls_key"),
    "session_tls_key": prove_session_tls("backend", "session_tls_certificate", "session_tls_key"),
    "session_tls_ca": prove_session_tls("backend", "session_tls_ca"),
    "session_tls_names": prove_session_tls("backend", "session_tls_names"),
    "session_tls_required": prove_session_tls("backend", "session_tls_required", wrong="plain"),
    "secret_files": refused_session("secret_files", "this backend serves only proxies that hold its secret"),
    "session_memory_per_peer": refused_session("session_memory_per_peer", "session_memory_per_peer = 1048576", session_memory_per_peer="1MiB"),
    "peer_share": backend_said("peer_share", 25),
    "rights": prove_rights,
    "allowed_uids": prove_allowed("allowed_uids", "pass"),
    "allowed_gids": prove_allowed("allowed_gids", "os.setgroups([65534])"),
    "lane_idle": backend_said("lane_idle", "50us"),
    "park_always": backend_said("park_always", "true"),
    "log_level": prove_log_level,
}
BACKEND_RESTART = {"item_size_max": "2MiB", "evict": "false", "allow_debugtime": "true", "populate": "true", "lock_memory": "true", "warm_restart": "/dev/shm",
                   "partitions": 2, "pin": "on", "ack_timeout": 18, "log_format": "text"}


# --- the tests

def test_the_tables_are_known():
    for name, reload_rows, restart_rows in ("egret-proxy", PROXY, PROXY_RESTART), ("egret-backend", BACKEND, BACKEND_RESTART):
        rows = table(name)
        rows.pop("admin", None)
        expected = {**dict.fromkeys(reload_rows, "reload"), **dict.fromkeys(restart_rows, "restart")}
        assert rows == expected, name


@pytest.mark.parametrize("option", sorted(PROXY))
def test_the_proxy_applies(option, system):
    PROXY[option](system)


@pytest.mark.parametrize("option", sorted(BACKEND))
def test_the_backend_applies(option, system):
    BACKEND[option](system)


@pytest.mark.parametrize("name, changes", [("proxy", PROXY_RESTART), ("backend", BACKEND_RESTART)])
def test_what_needs_a_restart_is_said_line_by_line(name, changes, system):
    running = system()
    daemon = getattr(running, name)
    for option, value in changes.items():
        was = daemon.options.get(option)
        text = daemon.hup(**{option: value})
        assert len(re.findall(rf"warning: reload: {option} takes effect at a restart: it is .* until then, not ", text)) == 1, text
        assert text.count("\n") == 2 and "reloaded: no option has changed" in text, text
        daemon.options.pop(option)
        if was is not None:
            daemon.options[option] = was
    assert ask(running.address, b"get k\r\n") == b"END\r\n"


@pytest.mark.parametrize("wrong, complaint", [
    ("nonsense: 1", "nonsense: unknown option"),
    ("log_level: loud", "log_level: expected one of"),
    ("window: [", "egret-.*.yaml:"),
])
@pytest.mark.parametrize("name", ["proxy", "backend"])
def test_a_wrong_file_changes_nothing(name, wrong, complaint, system):
    running = system()
    daemon = getattr(running, name)
    good = daemon.path.read_text()
    place = good.count("\n") + 2
    option = "max_connections: 5" if name == "proxy" else "max_sessions: 1"
    daemon.path.write_text(f"{good}{option}\n{wrong}\n")
    before = len(daemon.log())
    daemon.daemon.signal(signal.SIGHUP)
    wait_for(lambda: "reload refused" in daemon.log()[before:], "the refusal")
    text = daemon.log()[before:]
    lines = [line for line in text.splitlines() if "[session_" not in line]  # sessions come and go at their own time
    assert len(lines) == 1, text
    assert re.search(rf"error: reload refused, everything stays as it was: .*{daemon.path.name}:{place}: .*", text) or wrong.endswith("["), text
    assert re.search(complaint, text), text
    assert running.settings()["maxconns"] == "4096"
    assert ask(running.address, b"get k\r\n") == b"END\r\n"


def test_clients_go_on_while_both_are_reloaded_again_and_again(system):
    running = system()
    with connect(running.address) as client:
        for number in range(40):
            running.proxy.options["idle_timeout"] = f"{number % 3}h" if number % 3 else "0"
            running.proxy.options["fetch_mode"] = ["auto", "fetch", "reply"][number % 3]
            running.backend.options["lane_idle"] = f"{number % 5 + 1}us"
            for daemon in running.proxy, running.backend:
                daemon.write()
                daemon.daemon.signal(signal.SIGHUP)
            for key in range(20):
                client.sendall(b"set k%d 0 0 1\r\nx\r\nget k%d\r\n" % (key, key))
                seen = b""
                while not seen.endswith(b"END\r\n"):
                    seen += client.recv(4096)
                assert seen == b"STORED\r\nVALUE k%d 0 1\r\nx\r\nEND\r\n" % key
    assert "refused" not in running.proxy.log() + running.backend.log()
