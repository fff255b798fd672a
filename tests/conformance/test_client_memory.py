"""What clients cost that do not read or are slow to send: bounded memory, and nobody else waits or loses anything."""

import threading
from urllib.request import urlopen

import pytest

from bystander import Bystander
from servers import SLACK, SUT, Egret, ask, connect, free_port, wait_for

MIB = 1 << 20
KIB = 1 << 10
CONNECTION_MEMORY = 512 * KIB
LARGE_VALUE_MEMORY = 32 * MIB

pytestmark = pytest.mark.skipif(SUT != "egret", reason="limits of Egret's own")


def start(partitions=3, **options):
    """One worker, so that each limit is its share, too."""
    return Egret(backend={"partitions": partitions}, proxy={"workers": 1, "admin": f"127.0.0.1:{free_port()}", **options})


@pytest.fixture(scope="module")
def egret():
    server = start(large_value_memory="32MiB")
    yield server
    server.check_alive()
    server.stop()


def value(length, tag):
    return (b"%s." % tag * (length // (len(tag) + 1) + 1))[:length]


def store(server, key, length):
    data = value(length, key)
    assert ask(server.address, b"set %s 0 0 %d\r\n" % (key, length) + data + b"\r\n") == b"STORED\r\n"
    return data


def expect(sock, data):
    """Reads `data` and nothing else."""
    at = 0
    while at < len(data):
        got = sock.recv(min(1 << 20, len(data) - at))
        assert got, f"the end after {at} of {len(data)} bytes"
        assert got == data[at:at + len(got)], f"another answer at byte {at}"
        at += len(got)


def send_what_it_takes(sock, data):
    try:
        sock.sendall(data)
    except OSError:
        pass  # it was disconnected


def answer(key, data):
    return b"VALUE %s 0 %d\r\n" % (key, len(data)) + data + b"\r\nEND\r\n"


# What unread clients ask for: 60 MiB each and more, with a few hundred bytes.
QUESTIONS = {
    "behind a large value": [b"large"] + [b"medium"] * 1200,
    "values that are fetched in one piece": [b"medium"] * 1500,
    "small values": [b"small"] * 40_000,
    "large values alone": [b"large"] * 70,
}


@pytest.mark.parametrize("what", QUESTIONS)
def test_a_client_that_never_reads_costs_its_limit_and_one_large_value(egret, what):
    """And when it reads at last, every answer is there, whole and in order."""
    known = {b"large": store(egret, b"large", 900_000), b"medium": store(egret, b"medium", 40_000), b"small": store(egret, b"small", 2000)}
    keys = QUESTIONS[what]
    asked = b"".join(b"get %s\r\n" % key for key in keys)
    at_rest = egret.proxies[0].rss_bytes()
    clients = [connect(egret.address) for _ in range(20)]
    with Bystander(egret.address):
        senders = [threading.Thread(target=send_what_it_takes, args=(client, asked), daemon=True) for client in clients]
        for sender in senders:
            sender.start()
        grown = []

        def is_at_rest():
            grown.append(egret.proxies[0].rss_bytes())
            return len(grown) > 20 and max(grown[-10:]) == min(grown[-10:])
        wait_for(is_at_rest, "the proxy to stop growing", timeout=60 * SLACK, step=0.1)
        bound = len(clients) * MIB + LARGE_VALUE_MEMORY
        assert max(grown) - at_rest < bound, f"grew by {(max(grown) - at_rest) / MIB:.1f} MiB"
        for client in clients[:1]:  # the others may be disconnected meanwhile, where this one needs their room
            for key in keys:
                expect(client, answer(key, known[key]))
        for client in clients:
            client.close()


def metric(server, name):
    text = urlopen(f"http://{server.proxy_options['admin']}/metrics", timeout=10).read().decode()
    return float(next(line.split()[1] for line in text.splitlines() if line.startswith(name + " ")))


def test_unread_answers_are_counted_and_gone_when_the_client_is(egret):
    store(egret, b"medium", 40_000)
    client = connect(egret.address)
    threading.Thread(target=client.sendall, args=(b"get medium\r\n" * 1000,), daemon=True).start()
    wait_for(lambda: metric(egret, "egret_proxy_connection_memory_waits_total") > 0, "a connection at its limit")
    assert 0 < metric(egret, "egret_proxy_client_memory_bytes") <= CONNECTION_MEMORY + 256 * KIB
    client.close()
    wait_for(lambda: metric(egret, "egret_proxy_client_memory_bytes") == 0, "memory to be given back")


def test_all_connections_together_have_a_limit_and_each_goes_on_when_its_client_reads():
    server = start(client_memory="1MiB")
    data = store(server, b"medium", 40_000)
    idle = [connect(server.address) for _ in range(16)]
    for client in idle:
        threading.Thread(target=client.sendall, args=(b"get medium\r\n" * 1000,), daemon=True).start()
    wait_for(lambda: metric(server, "egret_proxy_client_memory_waits_total") > 0, "the limit of all")
    assert ask(server.address, b"get medium\r\n", end=b"END\r\n") == answer(b"medium", data)
    for _ in range(1000):
        expect(idle[5], answer(b"medium", data))
    server.check_alive()
    server.stop()


def test_slow_uploads_hold_up_nobody_and_lose_nothing(egret):
    """Twenty clients each owe the second half of a large value; another one's large sets go by."""
    length = 600_000
    slow = [connect(egret.address) for _ in range(20)]
    for number, client in enumerate(slow):
        client.sendall(b"set slow%d 0 0 %d\r\n" % (number, length) + value(length, b"slow%d" % number)[:length // 2])
    with Bystander(egret.address):
        for number in range(20):
            store(egret, b"quick%d" % number, 700_000)
    for number, client in enumerate(slow[:10]):
        client.sendall(value(length, b"slow%d" % number)[length // 2:] + b"\r\n")
        assert client.recv(100) == b"STORED\r\n", number
        assert ask(egret.address, b"get slow%d\r\n" % number, end=b"END\r\n") == answer(b"slow%d" % number, value(length, b"slow%d" % number))
    for client in slow:
        client.close()


def test_where_there_is_no_memory_to_collect_a_slow_upload_gives_way():
    server = start(partitions=1, large_value_memory="1MiB")
    length = 700_000
    slow = [connect(server.address) for _ in range(6)]
    for number, client in enumerate(slow):
        client.sendall(b"set slow%d 0 0 %d\r\n" % (number, length) + b"s" * (length // 2))
    with Bystander(server.address):
        assert store(server, b"quick", 900_000)
    for client in slow:
        client.sendall(b"s" * (length - length // 2) + b"\r\n")
    answers = {client.recv(100) for client in slow}
    assert answers <= {b"STORED\r\n", b"SERVER_ERROR out of memory storing object\r\n"}
    assert b"SERVER_ERROR out of memory storing object\r\n" in answers
    server.check_alive()
    server.stop()


def test_a_value_that_is_collected_after_all_holds_up_nobody():
    """It waited for room at the backend first. Who comes later finds room although it is not whole yet, and when it is lost."""
    server = start(partitions=1, large_value_memory="1MiB")  # half of it to collect values in

    def begin(key, length, sent):
        client = connect(server.address)
        client.sendall(b"set %s 0 0 %d\r\n" % (key, length) + b"x" * sent)
        ask(server.address, b"mn\r\n")  # one worker: what was sent before has been read
        return client

    open_one = begin(b"open", 700_000, 350_000)
    collected = begin(b"collected", 600_000, 300_000)
    waits = begin(b"waits", 400_000, 100_000)
    collected.sendall(b"x" * 300_000 + b"\r\n")
    assert collected.recv(100) == b"STORED\r\n"
    ask(server.address, b"mn\r\n")  # now there is memory for the one that waits, and none for another
    for when in ("it is collected", "it is lost"):
        later = begin(b"later", 300_000, 300_000)
        later.sendall(b"\r\n")
        assert later.recv(100) == b"STORED\r\n", when
        later.close()
        waits.close()
    for client in (open_one, collected):
        client.close()
    server.check_alive()
    server.stop()
