"""Members that a name server says, over a real verbs stack: they serve, their keys stay when addresses change, and a member that comes
serves without a reload, with the values of the keys that it owns now.

Runs in a guest (one_host.sh). The name server is that of the conformance tests.
"""

import pytest

import servers
from name_server import ZONE, NameServer

KEYS = [b"key%d" % number for number in range(100)]


class NamedPool(servers.EgretPool):
    """Its backends are the targets of SRV records: one.pool.test and so on, all at this guest's address, each at its port."""

    def __init__(self, names):
        super().__init__(names, proxy={"workers": 1}, start=False)
        self.name_server = NameServer(self.directory)
        self.proxy_options["dns_servers"] = self.name_server.address
        self.start_backend()

    def port_of(self, number):
        return int(self.address_of_backend(number).rsplit(":", 1)[1])

    def publish(self, *numbers):
        self.name_server.answer(services={"_egret._tcp": [(self.names[number], self.port_of(number)) for number in numbers]},
                                addresses={self.names[number]: [servers.RDMA_ADDRESS] for number in numbers})

    def backends_of_proxy(self, index):
        return super().backends_of_proxy(index) if index in self.alone else f"srv+rdma:_egret._tcp.{ZONE}."

    def up(self):
        stats = servers.stats_of(self.address)
        return int(stats["egret_backends_up"]), int(stats["egret_backends"])

    def store(self, keys):
        answer = servers.ask(self.address, b"".join(b"set %s 0 0 1\r\n1\r\n" % key for key in keys) + b"mn\r\n", b"MN\r\n", timeout=60)
        assert answer == b"STORED\r\n" * len(keys) + b"MN\r\n"

    def found(self, address=None):
        answer = servers.ask(address or self.address, b"get " + b" ".join(KEYS) + b"\r\n", b"END\r\n", timeout=60)
        return {line.split(b" ")[1] for line in answer.split(b"\r\n") if line.startswith(b"VALUE ")}

    def stop(self):
        self.name_server.stop()
        super().stop()


@pytest.fixture
def pool():
    server = NamedPool(["one", "two", "three"])
    try:
        server.publish(0, 1)
        server.add_proxy()
        yield server
        server.check_alive()
    finally:
        server.stop()


def test_members_serve_and_one_that_comes_serves_without_a_reload(pool):
    servers.wait_for(lambda: pool.up() == (2, 2), "two members")
    pool.store(KEYS)
    assert pool.found() == set(KEYS)
    pool.publish(0, 1, 2)
    servers.wait_for(lambda: pool.up() == (3, 3), "three members")
    servers.wait_for(lambda: pool.found() == set(KEYS), "values to come with their keys")  # those of warm_for, which begins a moment later
    assert 0 < len(pool.found(pool.add_lone_proxy(2))) < len(KEYS)
