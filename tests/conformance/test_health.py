"""A backend of a pool that dies or hangs: after the verdict of the process no request for its keys waits, others do not notice, and
it is back when it answers a probe."""

import contextlib
import re
import signal
import urllib.request

import pytest

from servers import SLACK, SUT, EgretPool, ask, connect, stats_of, wait_for
from test_pool import UNAVAILABLE, homes, served, store

pytestmark = pytest.mark.skipif(SUT != "egret", reason="needs backends of our own")


@contextlib.contextmanager
def pool_of(**proxy):
    server = EgretPool(proxy={"admin": "127.0.0.1:0", **proxy})
    try:
        yield server
        server.check_alive()
    finally:
        server.stop()


def metric(server, name, backend):
    address = re.search(r"admin address: (\S+)", server.proxies[0].log(1 << 20))[1]
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=30 * SLACK) as answer:
        return int(re.search(rf'^{name}{{backend="{backend}"}} (\d+)', answer.read().decode(), re.M)[1])


def is_ejected(server, number):
    return metric(server, "egret_proxy_backend_ejected", server.names[number]) == 1


def is_up(server, number):
    return metric(server, "egret_proxy_backend_up", server.names[number]) == 1


def said(server, event):
    """The log's lines of an event."""
    return re.findall(rf"^.* \[{event}\]$", server.proxies[0].log(1 << 20), re.M)


@contextlib.contextmanager
def standing_still(server, number):
    server.backends[number].halt()
    try:
        yield
    finally:
        server.backends[number].signal(signal.SIGCONT)


def every_command(key):
    return [b"get %s\r\n" % key, b"mg %s v\r\n" % key, b"gat 0 %s\r\n" % key, b"set %s 0 0 1\r\nx\r\n" % key,
            b"set %s 0 0 300000\r\n%s\r\n" % (key, b"x" * 300_000), b"append %s 0 0 1\r\nx\r\n" % key,
            b"cas %s 0 0 1 5\r\nx\r\n" % key, b"delete %s\r\n" % key, b"incr %s 1\r\n" % key, b"touch %s 0\r\n" % key]


def test_a_killed_backend_is_ejected_and_returns_by_a_probe():
    with pool_of() as server:
        found = homes(server)
        server.kill_backend(1)
        wait_for(lambda: is_ejected(server, 1), "the verdict")
        (line,) = said(server, "member_ejected")
        assert "backend two (" in line and line.endswith(" is ejected: no worker has a session with it [member_ejected]"), line
        for request in every_command(found[1][0]):
            assert ask(server.address, request) == UNAVAILABLE
        for number in (0, 2):
            served(server.address, found[number][0])
            assert metric(server, "egret_proxy_backend_ejections_total", server.names[number]) == 0
        rows = stats_of(server.address, b"egret")
        assert (rows["backend:1:ejected"], rows["backend:1:eject_reason"]) == ("1", "unreachable")
        assert rows["backend:0:ejected"] == "0"
        assert stats_of(server.address)["egret_backends_ejected"] == "1"
        wait_for(lambda: metric(server, "egret_proxy_backend_failed_probes_total", "two") >= 3, "probes")
        server.start_backend(1)
        wait_for(lambda: not is_ejected(server, 1) and is_up(server, 1), "its return")
        served(server.address, found[1][0])
        assert len(said(server, "member_returned")) == 1
        assert metric(server, "egret_proxy_backend_ejections_total", "two") == 1


def test_after_the_verdict_no_request_waits_for_a_backend_that_hangs():
    """A request that waits is answered by another line: that it has timed out, or that its session was lost."""
    with pool_of(op_timeout="500ms") as server:
        found = homes(server)
        with standing_still(server, 2):
            clients = [connect(server.address, timeout=60) for _ in range(8)]
            for key, client in zip(found[2], clients):
                client.sendall(b"get %s\r\n" % key)
            for client in clients:
                assert client.recv(100).startswith(b"SERVER_ERROR ")
            wait_for(lambda: is_ejected(server, 2), "the verdict")
            assert any(line.endswith("is ejected: it does not answer in time [member_ejected]") for line in said(server, "member_ejected"))
            for _ in range(3):  # by whichever worker
                for request in every_command(found[2][0]):
                    assert ask(server.address, request) == UNAVAILABLE
            for number in (0, 1):
                served(server.address, found[number][0])
            for client in clients:
                client.close()
        wait_for(lambda: not is_ejected(server, 2) and is_up(server, 2), "its return")
        served(server.address, found[2][0])


def test_no_more_than_the_share_are_ejected_and_the_others_are_tried_on():
    with pool_of(op_timeout="300ms") as server:  # of three one may be
        found = homes(server)
        with standing_still(server, 0), standing_still(server, 1):
            def verdict():
                for number in (0, 1):
                    assert ask(server.address, b"get %s\r\n" % found[number][0], timeout=60).startswith(b"SERVER_ERROR ")
                return said(server, "ejection_withheld")
            wait_for(verdict, "the second to be spared")
            assert is_ejected(server, 0) != is_ejected(server, 1)
            served(server.address, found[2][0])
        for number in (0, 1):
            wait_for(lambda: not is_ejected(server, number) and is_up(server, number), "all to be back")
            served(server.address, found[number][0])


def test_no_first_request_after_idle_fails():
    """Its backend has died and come back while nobody asked for anything."""
    with pool_of() as server:
        found = homes(server)
        for _ in range(3):
            before = metric(server, "egret_proxy_backend_ejections_total", "two")
            server.kill_backend(1)
            wait_for(lambda: metric(server, "egret_proxy_backend_ejections_total", "two") > before, "the verdict")
            server.start_backend(1)
            wait_for(lambda: is_up(server, 1), "its return")
            for key in found[1][:8]:  # a connection each: of whichever worker
                assert ask(server.address, b"get %s\r\n" % key) == b"END\r\n"
        store(server.address, found[1])


def test_who_hangs_again_and_again_is_let_in_later_each_time():
    with pool_of(op_timeout="200ms", eject_after=1) as server:
        key = homes(server)[1][0]
        lasted = []
        for turn in range(3):
            with standing_still(server, 1):
                ask(server.address, b"get %s\r\n" % key, timeout=60)
                wait_for(lambda: metric(server, "egret_proxy_backend_ejections_total", "two") == turn + 1, "the verdict")
            wait_for(lambda: is_up(server, 1), "its return")
            lasted.append(int(re.search(r"ejected for (\d+) ms", said(server, "member_returned")[-1])[1]))
        assert lasted[1] >= 800 and lasted[2] >= 1600, lasted
