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


def test_large_values_that_nobody_reads_cost_what_large_values_may_together():
    """Not one for each connection, however many there are. Of two workers each has room for two; who does not read makes room after 5 s."""
    server = start(large_value_memory="4MiB")
    data = store(server, b"large", 900_000)
    before = server.proxies[0].rss_bytes()
    clients = [connect(server.address) for _ in range(8)]
    with Bystander(server.address):
        for client in clients:
            client.sendall(b"get large\r\n" * 10)
        assert growth_at_rest(server, before) < 4 * MIB + len(clients) * 256 * KIB
        reader = connect(server.address)
        reader.sendall(b"get large\r\n" * 3)
        for _ in range(3):
            expect(reader, answer(b"large", data))
    for client in (reader, *clients):
        client.close()
    server.check_alive()
    server.stop()


def metric(server, name):
    text = urlopen(f"http://{server.proxy_options['admin']}/metrics", timeout=10).read().decode()
    return float(next(line.split()[1] for line in text.splitlines() if line.startswith(name + " ")))


def test_unread_answers_are_counted_and_gone_when_the_client_is(egret):
    store(egret, b"medium", 40_000)
    client = connect(egret.address)
    threading.Thread(target=client.sendall, args=(b"get medium\r\n" * 1000,), daemon=True).start()
    wait_for(lambda: metric(egret, "egret_proxy_connection_memory_waits_total") > 0, "a connection at its limit")
    wait_for(lambda: metric(egret, "egret_proxy_client_memory_bytes") > 0, "the end of the pass that met the limit")
    assert metric(egret, "egret_proxy_client_memory_bytes") <= CONNECTION_MEMORY + 256 * KIB
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


# --- Issue 16, row 4

@pytest.mark.parametrize("partitions", [1, 3])
def test_slow_clients_of_one_proxy_cost_a_client_of_another_nothing(partitions):
    """48 clients each owe the rest of a large value, through eight workers, which is as much as uploads may hold together."""
    server = Egret(backend={"partitions": partitions, "memory": f"{64 * partitions}MiB"}, proxy={"workers": 8}, proxies=2)
    theirs, ours = server.addresses
    length = 1_000_000
    data = value(length, b"old")
    assert ask(ours, b"set kept 0 0 %d\r\n" % length + data + b"\r\n") == b"STORED\r\n"
    slow = [connect(theirs) for _ in range(48)]
    for number, client in enumerate(slow):
        client.sendall(b"set slow%d 0 0 %d\r\n" % (number, length) + b"s" * 11_000)
    with Bystander(ours):
        for number in range(30):
            key = b"kept" if number % 3 == 0 else b"mine%d" % number
            data = value(length, b"%d" % number)
            assert ask(ours, b"set %s 0 0 %d\r\n" % (key, length) + data + b"\r\n") == b"STORED\r\n"
            assert ask(ours, b"get %s\r\n" % key, end=b"END\r\n") == answer(key, data)
    for client in slow:
        client.sendall(b"s" * (length - 11_000) + b"\r\n")
    answers = [client.recv(100) for client in slow]
    assert set(answers) <= {b"STORED\r\n", b"SERVER_ERROR out of memory storing object\r\n"}
    for client in slow:
        client.close()
    server.check_alive()
    server.stop()


@pytest.mark.parametrize("command, stays", [(b"set", False), (b"replace", True), (b"append", True)])
def test_an_upload_that_was_too_slow_leaves_of_its_own_old_item_what_memcached_would(command, stays):
    """docs/decisions/uploads.md: the answer is that of a memcached without memory, and so is what becomes of the old item."""
    server = start(partitions=1, large_value_memory="1MiB")
    length = 700_000
    assert ask(server.address, b"set slow 0 0 3\r\nold\r\n") == b"STORED\r\n"
    assert ask(server.address, b"set gone 0 0 3\r\nold\r\n") == b"STORED\r\n"
    slow, gone = connect(server.address), connect(server.address)
    slow.sendall(command + b" slow 0 0 %d\r\n" % length + b"s" * (length // 2))
    ask(server.address, b"mn\r\n")
    gone.sendall(command + b" gone 0 0 %d\r\n" % length + b"s" * (length // 2))  # is collected
    ask(server.address, b"mn\r\n")
    store(server, b"quick", 900_000)  # there is neither room nor memory: the slow one gives way
    gone.close()
    slow.sendall(b"s" * (length - length // 2) + b"\r\n")
    assert slow.recv(100) == b"SERVER_ERROR out of memory storing object\r\n"
    assert ask(server.address, b"get slow\r\n", end=b"END\r\n") == (b"VALUE slow 0 3\r\nold\r\n" if stays else b"") + b"END\r\n"
    assert ask(server.address, b"get gone\r\n", end=b"END\r\n") == b"VALUE gone 0 3\r\nold\r\nEND\r\n"
    slow.close()
    server.check_alive()
    server.stop()


# --- Answers that grow with what others did

PREFIXES = 65_536


def line_of_long_prefix(number):
    return b"get %s:\r\n" % (b"%d." % number * 60)[:240]


def fill_prefixes(server):
    assert ask(server.address, b"stats detail on\r\n") == b"OK\r\n"
    with connect(server.address) as sock:
        lines = sock.makefile("rb")
        for first in range(0, PREFIXES, 1024):
            sock.sendall(b"".join(line_of_long_prefix(number) for number in range(first, first + 1024)))
            for _ in range(1024):
                assert lines.readline() == b"END\r\n"
    assert ask(server.address, b"stats detail off\r\n") == b"OK\r\n"


def growth_at_rest(server, before):
    """By how much the proxy has grown at most until it grows no more."""
    grown = []

    def is_at_rest():
        grown.append(server.proxies[0].rss_bytes() - before)
        return len(grown) > 10 and max(grown[-5:]) == min(grown[-5:])
    wait_for(is_at_rest, "the proxy to stop growing", timeout=60 * SLACK, step=0.1)
    return max(grown)


def test_reports_that_nobody_reads_cost_a_page():
    """33 MiB for 19 bytes of request, if they were rendered whole; and they are whole for who reads."""
    server = start()
    fill_prefixes(server)
    before = server.proxies[0].rss_bytes()
    clients = [connect(server.address) for _ in range(20)]
    with Bystander(server.address):
        for client in clients:
            client.sendall(b"stats detail dump\r\n" * 10)
        assert growth_at_rest(server, before) < len(clients) * MIB
        wait_for(lambda: metric(server, "egret_proxy_client_memory_bytes") < len(clients) * CONNECTION_MEMORY, "memory to be within limits")
    report = ask(server.address, b"stats detail dump\r\n", end=b"END\r\n", timeout=60)
    assert report.count(b"\r\n") == PREFIXES + 1
    assert len(set(line.split()[1] for line in report.splitlines()[:-1])) == PREFIXES
    for client in clients:
        client.close()
    server.check_alive()
    server.stop()


def test_stats_conns_is_made_as_it_is_read():
    server = start()
    others = [connect(server.address) for _ in range(3000)]
    ask(server.address, b"mn\r\n")
    before = server.proxies[0].rss_bytes()
    clients = [connect(server.address) for _ in range(20)]
    with Bystander(server.address):
        for client in clients:
            client.sendall(b"stats conns\r\n" * 20)
        assert growth_at_rest(server, before) < len(clients) * 256 * KIB, "a report takes 430 KiB"
    report = ask(server.address, b"stats conns\r\n", end=b"END\r\n", timeout=60)
    ports = set(line.rsplit(b":", 1)[1] for line in report.splitlines() if b":addr " in line)
    assert ports >= {b"%d" % other.getsockname()[1] for other in others}
    for client in clients + others:
        client.close()
    server.check_alive()
    server.stop()


# --- Input

def test_half_commands_count_as_memory_and_who_never_ends_them_has_to_go():
    """Half of client_memory is as much as they may hold for long. Whoever sends commands whole is served all the while."""
    server = start(client_memory="2MiB")
    slow = [connect(server.address) for _ in range(40)]
    for client in slow:
        client.sendall(b"set half 0 0 4000\r\n" + b"h" * 1000)
    with Bystander(server.address):
        wait_for(lambda: metric(server, "egret_proxy_client_memory_bytes") > 2 * MIB, "half commands to count")
        wait_for(lambda: metric(server, "egret_proxy_stalled_senders_total") > 0, "those who are slow to go")
        wait_for(lambda: metric(server, "egret_proxy_client_memory_bytes") <= 1 * MIB, "memory to be given back")
    for client in slow:
        client.close()
    wait_for(lambda: metric(server, "egret_proxy_client_memory_bytes") == 0, "all memory to be given back")
    server.check_alive()
    server.stop()
