"""A TCP socket with SO_LINGER, sent over a Unix socket: whoever closes it waits for as long as the sender likes. No thread that serves others
does, neither where the kernel refuses such descriptors (SO_PASSRIGHTS) nor where it cannot."""

import os
import socket

import pytest

from bystander import Bystander
from servers import BUILD, Egret, connect
from shm_peer import Peer, halted, kernel_refuses_descriptors, let_go, lingering_socket, socket_name

MANY = 6
STRANGER = 65534
KERNELS = [pytest.param(True, marks=pytest.mark.skipif(not kernel_refuses_descriptors(), reason="this kernel has no SO_PASSRIGHTS")), False]


@pytest.fixture(params=KERNELS, ids=["refused by the kernel", "an older kernel"])
def system(request, monkeypatch):
    if not request.param:
        monkeypatch.setenv("LD_PRELOAD", str(BUILD / "libegret_no_passrights.so"))
    server = Egret(backend={"listen": None}, start=False, proxy={"workers": 1})
    server.backend_address = f"shm:@egret-hostile-{os.getpid()}-{os.urandom(4).hex()}"
    server.backend_options.pop("listen")
    server.backend_options["admin"] = f"unix:{server.directory}/backend-admin.sock"
    server.proxy_options["admin"] = f"unix:{server.directory}/proxy-admin.sock"
    server.start_backend()
    server.add_proxy()
    monkeypatch.delenv("LD_PRELOAD", raising=False)
    server.refuses = request.param
    yield server
    server.check_alive()
    assert server.proxies[0].stop() == 0 and server.backend.stop() == 0, "a daemon hung"
    server.stop()


def send_lingering(target, data, refuses):
    """Sends one over that connected socket, keeping no other descriptor of it open. What is returned keeps it lingering."""
    sender, rest = lingering_socket()
    try:
        socket.send_fds(target, [data], [sender.fileno()])
    except PermissionError:
        assert refuses, "the kernel should not refuse"
        let_go(sender)
        return rest
    assert not refuses, "the kernel should refuse"
    sender.close()
    return rest


def as_stranger(work):
    """Runs it in a child of another user."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.setgid(STRANGER)
            os.setuid(STRANGER)
            work()
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0


def assert_control_thread_serves(server):
    with Peer(server.backend_address) as peer:
        assert peer.open_session()["lanes"] == 3


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user")
def test_a_stranger_at_the_backends_socket(system):
    """Who has no right to a session is turned away before a byte is read: the queue of its socket is closed with it."""
    rests = [lingering_socket() for _ in range(MANY)]

    def attack():
        refused = 0
        for sender, _ in rests:
            sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            sock.connect(socket_name(system.backend_address))
            try:
                socket.send_fds(sock, [b"x"], [sender.fileno()])
            except PermissionError:
                refused += 1
        assert refused == (MANY if system.refuses else 0), "what the kernel does"
    with Bystander(system.address):
        with halted(system.backend):
            as_stranger(attack)
            for sender, _ in rests:
                let_go(sender) if system.refuses else sender.close()
        assert_control_thread_serves(system)
    assert_control_thread_serves(system)


@pytest.mark.parametrize("says", ["a hello", "nothing"])
def test_a_peer_of_the_backend(system, says):
    rests, peers = [], []
    with Bystander(system.address):
        for _ in range(MANY):
            peers.append(Peer(system.backend_address))
            if says == "a hello":
                peers[-1].open_session()
        with halted(system.backend):
            for peer in peers:
                rests.append(send_lingering(peer.sock, b"x" * 40, system.refuses))
        assert_control_thread_serves(system)
        for peer in peers:
            peer.close()
        assert_control_thread_serves(system)


@pytest.mark.parametrize("data", [b"get x\r\n", b"set x 0 0 100\r\nabc"])
@pytest.mark.parametrize("leaves", [True, False])
def test_a_client_of_the_proxys_unix_socket(system, data, leaves):
    """The bystander is a client of the same worker. Some have left when the proxy looks, or have not even been accepted."""
    rests, socks = [], []
    with Bystander(system.address):
        with halted(system.proxies[0]):
            for _ in range(MANY):
                sock = connect(system.unix_address())
                rests.append(send_lingering(sock, data, system.refuses))
                socks.append(sock)
                if leaves:
                    sock.close()
        with connect(system.unix_address()) as sock:
            sock.sendall(b"get nothing\r\n")
            assert sock.recv(100) == b"END\r\n"
        for sock in socks:
            sock.close()


def admin_of(system, who):
    """The daemon, and its admin socket."""
    return {"proxy": system.proxies[0], "backend": system.backend}[who], f"{system.directory}/{who}-admin.sock"


def get_metrics(path):
    """Its pages are larger than what a socket holds at once."""
    with connect(path) as sock:
        sock.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        with sock.makefile("rb") as answer:
            return answer.read()


@pytest.mark.parametrize("who", ["proxy", "backend"])
@pytest.mark.parametrize("data", [b"G", b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"], ids=["half a request", "a request"])
def test_a_client_of_an_admin_socket(system, who, data):
    daemon, path = admin_of(system, who)
    rests, socks = [], []
    with Bystander(system.address):
        assert get_metrics(path).startswith(b"HTTP/1.1 200 OK")
        with halted(daemon):
            for leaves in [True, False] * (MANY // 2):
                sock = connect(path)
                rests.append(send_lingering(sock, data, system.refuses))
                if leaves:
                    sock.close()
                else:
                    socks.append(sock)
        assert_control_thread_serves(system)
        page = get_metrics(path)
        assert page.startswith(b"HTTP/1.1 200 OK") and page.endswith(b"\n") and b"egret_" in page
        for sock in socks:
            sock.close()
        assert get_metrics(path).startswith(b"HTTP/1.1 200 OK")


@pytest.mark.parametrize("who", ["proxy", "backend"])
def test_a_client_of_an_admin_socket_that_is_never_accepted(system, who):
    daemon, path = admin_of(system, who)
    rests = []
    with halted(daemon):
        for _ in range(MANY):
            with connect(path) as sock:
                rests.append(send_lingering(sock, b"G", system.refuses))
        daemon.process.terminate()
    assert daemon.wait() == 0
    system.start_proxy(0) if who == "proxy" else system.start_backend()
    assert system.wait_ready(0)


def test_a_client_that_is_never_accepted(system):
    """What waits in the queue of a socket that waits in the queue of the listener, when the proxy ends."""
    rests = []
    with halted(system.proxies[0]):
        for _ in range(MANY):
            with connect(system.unix_address()) as sock:
                rests.append(send_lingering(sock, b"get x\r\n", system.refuses))
        system.proxies[0].process.terminate()
    assert system.proxies[0].wait() == 0
    system.start_proxy(0)
    assert system.wait_ready(0)
