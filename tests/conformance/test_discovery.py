"""The pool's members by DNS: a real name server whose answers change, and a proxy that follows them without a reload.

Names lead to rdma: addresses at which nobody answers here: what is looked at is who the members are. That they serve is shown where
there is an RDMA device, by tests/rdma/daemons/test_names.py.
"""

import re
import signal
import urllib.request

import pytest

import servers
from name_server import ZONE, NameServer
from servers import SUT, Egret, wait_for

pytestmark = pytest.mark.skipif(SUT != "egret", reason="memcached resolves no names")

SERVICE = "_egret._tcp"


class NamedPool(Egret):
    """A proxy whose backends are these entries, and the name server that it asks."""

    def __init__(self, *entries):
        self.entries = entries
        super().__init__(proxy={"admin": f"127.0.0.1:{servers.free_port()}", "workers": 1}, start=False)
        self.names = NameServer(self.directory)

    def backends_of_proxy(self, _index):
        return ",".join(self.entries)

    def start(self):
        self.proxy_options["dns_servers"] = self.names.address
        self.addresses.append(("127.0.0.1", servers.free_port()))
        self.proxies.append(None)
        self.start_proxy(0)

    def members(self):
        """name → address of every member; empty: the proxy does not answer yet."""
        try:
            with urllib.request.urlopen(f"http://{self.proxy_options['admin']}/metrics", timeout=10 * servers.SLACK) as page:
                text = page.read().decode()
        except OSError:
            return {}
        rows = re.findall(r"^egret_proxy_backend_info\{(.*)\} 1$", text, re.M)
        labels = [dict(re.findall(r'(\w+)="([^"]*)"', row)) for row in rows]
        return {each["backend"]: each["address"] for each in labels}

    def expect(self, members):
        wait_for(lambda: self.members() == members, f"the members {members}; they are {self.members()}")

    def expect_problem(self, text, after):
        wait_for(lambda: text in self.log()[after:], f"'{text}' in the log")

    def log(self):
        return self.proxies[0].log(1_000_000)

    def resolve_now(self):
        """Instead of after 5 s or more. Returns where the log ends before that."""
        end = len(self.log())
        self.proxies[0].signal(signal.SIGHUP)
        return end

    def daemons(self):
        return self.proxies

    def stop(self):
        self.names.stop()
        super().stop()


@pytest.fixture
def made():
    pools = []

    def make(*entries, **answer):
        pools.append(NamedPool(*entries))
        pools[-1].names.answer(**answer)
        pools[-1].start()
        return pools[-1]

    yield make
    for pool in pools:
        pool.check_alive()
    for pool in pools:
        pool.stop()


def addressed(*numbers):
    """The members of dns+rdma:NAME:11311."""
    return {f"10.99.0.{number}:11311": f"rdma:10.99.0.{number}:11311" for number in numbers}


def served(**targets):
    """The members of SRV records: host=last byte of its address."""
    return {f"{host}.{ZONE}:11311": f"rdma:10.99.0.{number}:11311" for host, number in targets.items()}


def services(*hosts):
    return {SERVICE: [(host, 11311) for host in hosts]}


def test_two_addresses_become_three_and_nobody_reloads_the_proxy(made):
    pool = made(f"dns+rdma:pool.{ZONE}.:11311", addresses={"pool": ["10.99.0.1", "10.99.0.2"]})
    pool.expect(addressed(1, 2))
    pool.names.answer(addresses={"pool": ["10.99.0.1", "10.99.0.2", "10.99.0.3"]})
    pool.expect(addressed(1, 2, 3))
    assert "backend rdma:10.99.0.3:11311 is in the pool now" in pool.log()
    assert "reloaded" not in pool.log()


def test_targets_of_srv_records_keep_their_names_when_their_addresses_change(made):
    pool = made(f"srv+rdma:{SERVICE}.{ZONE}.", services=services("one", "two"), addresses={"one": ["10.99.0.1"], "two": ["10.99.0.2"]})
    pool.expect(served(one=1, two=2))
    pool.names.answer(services=services("one", "two"), addresses={"one": ["10.99.0.7"], "two": ["10.99.0.2"]})
    pool.expect(served(one=7, two=2))
    pool.names.answer(services=services("one", "two", "three"),
                      addresses={"one": ["10.99.0.7"], "two": ["10.99.0.2"], "three": ["10.99.0.3"]})
    pool.resolve_now()
    pool.expect(served(one=7, two=2, three=3))


def test_what_a_name_server_fails_to_say_keeps_the_pool(made):
    good = {"services": services("one", "two"), "addresses": {"one": ["10.99.0.1"], "two": ["10.99.0.2"]}}
    pool = made(f"srv+rdma:{SERVICE}.{ZONE}.", **good)
    pool.expect(served(one=1, two=2))
    no_records = {"addresses": {SERVICE: ["10.99.0.9"]}}  # the name has an address, but no service
    for make_it_fail, why in (
        (pool.names.answer, "there is no such name"),
        (lambda: pool.names.answer(**no_records), "the name has no such records"),
        (pool.names.fail, "name servers fail, refuse, or cannot be reached"),
        (pool.names.be_silent, "no name server answers in time"),
    ):
        before = len(pool.log())  # the proxy may ask by itself as soon as it fails, and says so once
        make_it_fail()
        pool.resolve_now()
        pool.expect_problem(why, before)
        assert pool.members() == served(one=1, two=2), why
        pool.names.go_on()
        pool.names.answer(**good)
        pool.resolve_now()
    # And it follows again.
    pool.names.answer(services=services("two"), addresses={"two": ["10.99.0.2"]})
    pool.resolve_now()
    pool.expect(served(two=2))
    assert re.findall(r"backend (\S+) .*is no longer in the pool", pool.log()) == [f"one.{ZONE}:11311"]  # at any time


def test_a_hundred_srv_records_come_over_tcp(made):
    hosts = [f"backend-with-a-long-name-{number}" for number in range(100)]
    pool = made(f"srv+rdma:{SERVICE}.{ZONE}.", services=services(*hosts),
                addresses={host: [f"10.99.0.{number}"] for number, host in enumerate(hosts)})
    assert pool.names.truncates_over_udp(SERVICE)
    pool.expect(served(**{host: number for number, host in enumerate(hosts)}))


def test_names_and_addresses_make_one_pool(made):
    pool = made("rdma:10.99.0.1:11311 name=written", f"srv+rdma:{SERVICE}.{ZONE}.", f"dns+rdma:pool.{ZONE}.:11311",
                services=services("one"), addresses={"one": ["10.99.0.2"], "pool": ["10.99.0.3"]})
    pool.expect({"written": "rdma:10.99.0.1:11311", **served(one=2), **addressed(3)})


def test_members_of_names_for_tcp_are_reached_by_tcp_under_the_same_names(made):
    pool = made(f"srv+tcp:{SERVICE}.{ZONE}.", f"dns+tcp:pool.{ZONE}.:11311",
                services=services("one"), addresses={"one": ["10.99.0.2"], "pool": ["10.99.0.3"]})
    over_rdma = {**served(one=2), **addressed(3)}
    pool.expect({name: address.replace("rdma:", "tcp:") for name, address in over_rdma.items()})


def test_a_proxy_that_starts_before_its_name_server_gets_its_members_later(made):
    pool = made(f"dns+rdma:pool.{ZONE}.:11311")  # there is no such name yet
    pool.expect_problem("there is no such name", 0)
    pool.names.answer(addresses={"pool": ["10.99.0.1"]})
    pool.expect(addressed(1))
