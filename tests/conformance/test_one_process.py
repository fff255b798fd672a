"""egret-memcached as one process: what lies between its halves and beside them. What its flags do: test_front_door.py. Its answers:
every file that compares, with EGRET_ONE_PROCESS=1."""

import pathlib
import re
import signal
import socket
import struct
import subprocess
import threading
import time
import urllib.request
from random import Random

import pytest

import changing_values
from servers import SUT, Daemon, Egret, ask, connect, egret_binary, free_port, scratch_directory, stats_of, wait_for
from test_front_door import AS_ROOT, Front

pytestmark = pytest.mark.skipif(SUT != "egret", reason="egret-memcached's own")

KEYS = 64  # enough that each worker's partition has some


@pytest.fixture
def directory():
    path = scratch_directory()
    yield path
    for file in path.iterdir():
        file.unlink()
    path.rmdir()


@pytest.fixture
def one(directory):
    running = []

    def start(*flags, **arguments):
        running.append(Front(directory, *flags, **arguments))
        return running[-1]
    yield start
    for server in running:
        server.stop()


def page(port, path):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=30) as answer:
        return answer.read().decode()


def test_many_workers_have_their_own_sessions_at_once(one):
    """They are not newcomers that come back later, as proxies after a backend's restart are."""
    server = one("-t", "48", "-m", "64")
    for client in [connect(server.address) for _ in range(96)]:
        client.sendall(b"mg k\r\n")
        assert client.recv(100) == b"EN\r\n"
    assert "warning" not in server.log(1 << 20)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_that_comes_with_the_first_client_ends_it_in_order(one, number):
    for _ in range(5):
        port = free_port()
        server = one(where=("-l", "127.0.0.1", "-p", str(port)))
        while server.is_alive():
            with socket.socket() as sock:
                if sock.connect_ex(("127.0.0.1", port)) == 0:
                    break
        server.signal(number)
        assert server.process.wait(timeout=30) == 0, server.log()


def test_every_worker_reaches_every_partition(one):
    """Whichever worker a connection meets, and whose partition its key is in."""
    address = one("-t", "3").address
    clients = [connect(address) for _ in range(9)]
    for number, client in enumerate(clients):
        client.sendall(b"".join(b"set %d.%d 0 0 1\r\n%d\r\n" % (number, key, number) for key in range(KEYS)))
    for client in clients:
        with client.makefile("rb") as answers:
            assert [answers.readline() for _ in range(KEYS)] == [b"STORED\r\n"] * KEYS
    for number, client in enumerate(clients):
        other = (number + 1) % len(clients)
        client.sendall(b"get " + b" ".join(b"%d.%d" % (other, key) for key in range(KEYS)) + b"\r\n")
        with client.makefile("rb") as answers:
            got = [answers.readline() for _ in range(2 * KEYS + 1)]
        assert got == [line for key in range(KEYS) for line in (b"VALUE %d.%d 0 1\r\n" % (other, key), b"%d\r\n" % other)] + [b"END\r\n"]
        client.close()


def test_metrics_and_pages_of_both_halves(one):
    front, back = free_port(), free_port()
    server = one("-t", "2", "-o", f"egret_admin=127.0.0.1:{front},egret_backend_admin=127.0.0.1:{back}")
    assert ask(server.address, b"set a 0 0 1\r\nx\r\n") == b"STORED\r\n"
    assert ask(server.address, b"get a\r\n", end=b"END\r\n").startswith(b"VALUE a")
    assert re.search(r"^egret_proxy_[a-z_]+", page(front, "/metrics"), re.M)
    metrics = page(back, "/metrics")
    assert re.search(r"^egret_backend_transport_sessions\{[^}]*local[^}]*\} 2$", metrics, re.M), metrics
    for port in (front, back):
        assert "<html" in page(port, "/") and page(port, "/healthz")
    assert page(front, "/readyz")
    shown = stats_of(server.address)
    assert shown["pid"] == str(server.pid) and shown["curr_items"] == "1" and shown["threads"] == "2"


def test_other_programs_share_its_store(one, directory):
    """A proxy of its own, as any program with sessions, at -o egret_listen."""
    place = f"shm:{directory}/store"
    server = one("-t", "2", "-o", f"egret_listen={place}")
    server.ports()
    port = free_port()
    proxy = Daemon(Egret.argv("egret-proxy", {"listen": f"tcp:127.0.0.1:{port}", "backends": place, "admin": "", "workers": 2}), directory, "egret-proxy")
    try:
        wait_for(lambda: _answers(("127.0.0.1", port)), "the proxy to serve")
        for key in range(KEYS):
            assert ask(("127.0.0.1", port), b"set shared%d 0 0 1\r\nx\r\n" % key) == b"STORED\r\n"
        request = b"get " + b" ".join(b"shared%d" % key for key in range(KEYS)) + b"\r\n"
        assert ask(server.address, request, end=b"END\r\n").count(b"VALUE") == KEYS
        large = b"set large 0 0 700000\r\n" + b"x" * 700000 + b"\r\n"
        assert ask(server.address, large) == b"STORED\r\n"
        assert len(ask(("127.0.0.1", port), b"get large\r\n", end=b"END\r\n")) > 700000
    finally:
        assert proxy.stop() == 0
    assert ask(server.address, b"get shared1\r\n", end=b"END\r\n").startswith(b"VALUE")


def _answers(address):
    try:
        return ask(address, Egret.READY) == b"END\r\n"
    except OSError:
        return False


def test_what_was_sent_is_answered_at_a_stop(one):
    """Clients that are in the middle of large values, on all workers, when SIGTERM comes: whole answers, then the end."""
    server = one("-t", "2", "-m", "256")
    address = server.address
    value = b"v" * 600_000
    clients = [connect(address) for _ in range(8)]
    for number, client in enumerate(clients):
        client.sendall(b"set big%d 0 0 %d\r\n%s\r\n" % (number, len(value), value))
        assert client.makefile("rb").readline() == b"STORED\r\n"
    answers = [b""] * len(clients)

    def read(number):
        while piece := clients[number].recv(65536):
            answers[number] += piece
    readers = [threading.Thread(target=read, args=(number,)) for number in range(len(clients))]
    for number, client in enumerate(clients):
        client.sendall(b"get big%d\r\n" % number * 5)
    for reader in readers:
        reader.start()
    wait_for(lambda: all(answers), "the first bytes of answers")
    server.signal(signal.SIGTERM)
    assert server.wait(30) == 0
    for number, reader in enumerate(readers):
        reader.join()
        assert answers[number] == (b"VALUE big%d 0 %d\r\n%s\r\nEND\r\n" % (number, len(value), value)) * 5


def test_slow_work_lets_others_go_on(one):
    """A dump of all keys, large values and small requests at the same time, on the same workers."""
    server = one("-t", "2", "-m", "128")
    address = server.address
    many = 20_000
    with connect(address) as filler, filler.makefile("rb") as answers:
        filler.sendall(b"".join(b"set k%d 0 0 1 noreply\r\nx\r\n" % key for key in range(many)) + b"mn\r\n")
        assert answers.readline() == b"MN\r\n"
    with connect(address) as dumping, connect(address) as small, connect(address) as large:
        dumping.sendall(b"lru_crawler metadump all\r\n")
        large.sendall(b"set large 0 0 900000\r\n" + b"y" * 900000 + b"\r\n")
        assert ask_on(small, b"set small 0 0 1\r\nx\r\n", b"\r\n") == b"STORED\r\n"
        assert large.makefile("rb").readline() == b"STORED\r\n"
        dump = ask_on(dumping, b"", b"END\r\n")
        assert dump.count(b"key=k") == many
        assert ask_on(small, b"flush_all\r\n", b"\r\n") == b"OK\r\n"
        assert ask_on(small, b"get small k1 large\r\n", b"END\r\n") == b"END\r\n"


def test_a_walk_over_all_items_goes_on_between_other_clients_requests(one):
    """While the one worker walks and sends a dump, another client is answered again and again."""
    server = one("-t", "1", "-m", "256")
    many = 200_000
    with connect(server.address) as filler, filler.makefile("rb") as answers:
        for first in range(0, many, 20_000):
            filler.sendall(b"".join(b"set k%d 0 0 1 noreply\r\nx\r\n" % key for key in range(first, first + 20_000)))
        filler.sendall(b"mn\r\n")
        assert answers.readline() == b"MN\r\n"
    most = 0
    for _ in range(5):
        with connect(server.address) as dumping, connect(server.address) as small:
            ended = threading.Event()

            def read_dump():
                ask_on(dumping, b"lru_crawler metadump all\r\n", b"END\r\n")
                ended.set()

            reader = threading.Thread(target=read_dump)
            reader.start()
            answered = 0
            while not ended.is_set():
                assert ask_on(small, b"get k5\r\n", b"END\r\n") == b"VALUE k5 0 1\r\nx\r\nEND\r\n"
                answered += 1
            reader.join()
            most = max(most, answered)
    assert most >= 10, f"{most} requests were answered while a dump went on"


def ask_on(sock, request, end):
    sock.sendall(request)
    answer = bytearray()
    while not answer.endswith(end):
        piece = sock.recv(65536)
        assert piece, answer[-200:]
        answer += piece
    return bytes(answer)


def test_kept_items_are_found_by_another_number_of_workers(one, directory):
    """The number of partitions is that of the files; a worker may own several, or none."""
    flags = ("-e", f"/dev/shm/{directory.name}", "-m", "64")
    try:
        for workers in ("3", "1", "4"):
            server = one(*flags, "-t", workers)
            if workers == "3":
                for key in range(KEYS):
                    assert ask(server.address, b"set kept%d 0 0 1\r\nx\r\n" % key) == b"STORED\r\n"
            request = b"get " + b" ".join(b"kept%d" % key for key in range(KEYS)) + b"\r\n"
            assert ask(server.address, request, end=b"END\r\n").count(b"VALUE") == KEYS
            assert server.stop() == 0
    finally:
        for path in pathlib.Path("/dev/shm").glob(f"{directory.name}*"):
            path.unlink()


def test_a_reload_reads_the_proxys_files_again(one, directory):
    users = directory / "users"
    users.write_text("someone:first\n")
    users.chmod(0o600)
    server = one("-Y", users, "-t", "2", "-v")
    login = b"set auth 0 0 %d\r\nsomeone %s\r\n"
    assert ask(server.address, login % (13, b"first")) == b"STORED\r\n"
    users.write_text("someone:other\n")
    server.signal(signal.SIGHUP)
    wait_for(lambda: ask(server.address, login % (13, b"other")) == b"STORED\r\n", "the other password")
    server.check_alive()




def lent(port):
    """Values that were sent from the store, and bytes of those that still are."""
    metrics = page(port, "/metrics")
    total = sum(int(float(count)) for count in re.findall(r"^egret_backend_values_lent_total\{.*\} (\S+)", metrics, re.M))
    held = sum(int(float(count)) for count in re.findall(r"^egret_backend_lent_bytes\{.*\} (\S+)", metrics, re.M))
    return total, held


def with_metrics(one, *flags, memory="256"):
    port = free_port()
    server = one("-m", memory, "-o", f"egret_backend_admin=127.0.0.1:{port}", *flags)
    return server, port


def test_values_that_change_while_they_are_sent_are_whole(one):
    """Workers send long values from where the store has them, those of another worker's partition, too."""
    server, port = with_metrics(one, "-t", "2")
    changing_values.check(server.address)
    assert lent(port)[0] > 100
    assert server.is_alive()


def test_values_of_several_partitions_are_got_once_each(one):
    """Their results come in another order than the keys'; what is lent waits for its turn."""
    server, port = with_metrics(one, "-t", "2")
    keys, value = [b"key%d" % number for number in range(40)], b"v" * 20_000
    for key in keys:
        assert ask(server.address, b"set %s 0 0 %d\r\n%s\r\n" % (key, len(value), value)) == b"STORED\r\n"
    whole = b"".join(b"VALUE %s 0 %d\r\n%s\r\n" % (key, len(value), value) for key in keys) + b"END\r\n"
    assert ask(server.address, b"get " + b" ".join(keys) + b"\r\n", b"END\r\n") == whole
    assert ask(server.address, b"gat 1000 " + b" ".join(keys) + b"\r\n", b"END\r\n") == whole
    figures = stats_of(server.address)
    assert (figures["get_hits"], figures["touch_hits"]) == ("40", "40")
    assert lent(port)[0] == 80


def test_clients_that_do_not_read_are_lent_a_share_and_others_go_on(one):
    """What they have asked for stays as it was when they asked. Some read in the end, others go without a word."""
    server, port = with_metrics(one, "-t", "2")
    size, keys = 200_000, [b"key%d" % number for number in range(40)]

    def store(letter):
        with connect(server.address) as sock, sock.makefile("rb") as heard:
            for key in keys:
                sock.sendall(b"set %s 0 0 %d\r\n%s\r\n" % (key, size, letter * size))
                assert heard.readline() == b"STORED\r\n"

    store(b"a")
    asked = b"get " + b" ".join(keys) + b"\r\n"
    stalled = [connect(server.address) for _ in range(8)]
    for sock in stalled:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
        sock.sendall(3 * asked)  # more than sockets hold
    wait_for(lambda: lent(port)[1] > size, "values that are lent")
    for letter in (b"b", b"c"):
        store(letter)
        failures = []
        with connect(server.address) as sock, sock.makefile("rb") as heard:
            sock.sendall(asked)
            assert changing_values.read_answers(heard, 1, failures) == len(keys) and not failures
    assert lent(port)[1] <= 256 << 20
    for sock in stalled[::2]:
        sock.close()
    failures = []
    for sock in stalled[1::2]:
        with sock, sock.makefile("rb") as heard:
            assert changing_values.read_answers(heard, 3, failures) == 3 * len(keys) and not failures
    wait_for(lambda: lent(port)[1] == 0, "everything to come back")
    assert server.is_alive()


def test_a_stop_ends_what_is_lent(one):
    server, port = with_metrics(one, "-t", "2")
    value = b"v" * 500_000
    assert ask(server.address, b"set key 0 0 %d\r\n%s\r\n" % (len(value), value)) == b"STORED\r\n"
    with connect(server.address) as stalled:
        stalled.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
        stalled.sendall(60 * b"get key\r\n")
        wait_for(lambda: lent(port)[1] > 0, "values that are lent")
        server.signal(signal.SIGTERM)
        server.wait()
    assert server.process.returncode == 0, server.log()


def received_in_place(port):
    metrics = page(port, "/metrics")
    return sum(int(float(n)) for n in re.findall(r"^egret_backend_received_in_place_bytes_total\{.*\} (\S+)", metrics, re.M))


def in_cuts(sock, request, random):
    """Sends it in pieces, which the server may or may not read one by one."""
    while request:
        cut = random.choice((1, 2, 100, 4095, 4096, 4097, 30_000, 65_536, 200_000))
        sock.sendall(request[:cut])
        request = request[cut:]
        if random.random() < 0.3:
            time.sleep(0.001)


@pytest.mark.parametrize("workers", ("1", "2"))
def test_long_values_are_received_into_the_store(one, workers):
    """Of any length, in any pieces, with other commands before and behind them, and appended to."""
    server, port = with_metrics(one, "-t", workers)
    random = Random(5)
    sizes = [3000, 20_000, 65_535, 65_536, 65_537, 100_000, 131_072, 131_073, 500_000, 1_000_000]
    for letter in (b"a", b"b", b"c"):
        with connect(server.address) as sock, sock.makefile("rb") as heard:
            for size in random.sample(sizes, len(sizes)):
                value = (letter + random.randbytes(499)) * (size // 500)
                request = b"mn\r\nset %s 7 0 %d\r\n%s\r\n" % (letter, len(value), value)
                request += b"append %s 0 0 3\r\nend\r\nget %s\r\n" % (letter, letter)
                sender = threading.Thread(target=in_cuts, args=(sock, request, random))
                sender.start()
                for line in (b"MN\r\n", b"STORED\r\n", b"STORED\r\n", b"VALUE %s 7 %d\r\n" % (letter, len(value) + 3)):
                    assert heard.readline() == line, size
                assert heard.read(len(value) + 3) == value + b"end", size
                assert heard.readline() + heard.readline() == b"\r\nEND\r\n", size
                sender.join()
    total = 3 * sum(sizes)
    if workers == "1":  # of several, each receives those of its own partition alone
        assert received_in_place(port) > total // 2
    server.check_alive()


def test_binary_long_values_are_received_into_the_store(one):
    server, port = with_metrics(one, "-t", "1")
    random = Random(6)
    with connect(server.address) as sock, sock.makefile("rb") as heard:
        for size in (20_000, 100_000, 131_072, 300_000):
            value = random.randbytes(size)
            store = struct.pack(">BBHBBHIIQII", 0x80, 0x01, 3, 8, 0, 0, 11 + size, 1, 0, 7, 0) + b"key" + value
            fetch = struct.pack(">BBHBBHIIQ", 0x80, 0x00, 3, 0, 0, 0, 3, 2, 0) + b"key"
            sender = threading.Thread(target=in_cuts, args=(sock, store + fetch, random))
            sender.start()
            stored = struct.unpack(">BBHBBHIIQ", heard.read(24))
            assert (stored[5], stored[6]) == (0, 0)
            got = struct.unpack(">BBHBBHIIQ", heard.read(24))
            assert (got[5], got[6]) == (0, 4 + size)
            assert heard.read(4 + size) == b"\0\0\0\7" + value
            sender.join()
    assert received_in_place(port) > 400_000


@pytest.mark.parametrize("workers", ("1", "4"))
def test_many_clients_whose_long_values_come_at_one_time_are_all_stored(one, workers):
    """More of them than one lane may have open: those that a worker reads in one pass are committed at its end. With the
    memory and the threads of a memcached without options, too."""
    server, port = with_metrics(one, "-t", workers, memory="64")
    for size, count in ((102_400, 100), (1_000_000, 20)):
        value = b"v" * size
        clients = [connect(server.address) for _ in range(count)]
        for round_number in range(3):
            for number, sock in enumerate(clients):
                sock.sendall(b"set key%d 0 0 %d\r\n%s" % (number, size, value[:-5]))
            for sock in clients:
                sock.sendall(value[-5:] + b"\r\n")
            answers = [sock.recv(100) for sock in clients]
            assert answers == [b"STORED\r\n"] * count, (size, round_number)
        for sock in clients:
            sock.close()
    assert received_in_place(port) > 0


def test_long_values_that_end_early_or_wrongly_are_no_values(one):
    server, port = with_metrics(one, "-t", "1")
    set_key = b"set key 0 0 100000\r\n"
    assert ask(server.address, b"set key 0 0 3\r\nold\r\n") == b"STORED\r\n"
    before = received_in_place(port)
    for sent in (0, 1, 5000, 70_000, 100_000):
        with connect(server.address) as sock:
            sock.sendall(set_key + b"v" * sent)
            time.sleep(0.01)
    with connect(server.address) as sock, sock.makefile("rb") as heard:
        sock.sendall(set_key + b"v" * 100_000 + b"xxget key\r\n")
        assert heard.readline() == b"CLIENT_ERROR bad data chunk\r\n"
    assert ask(server.address, b"get key\r\n", b"END\r\n") == b"VALUE key 0 3\r\nold\r\nEND\r\n"
    assert received_in_place(port) > before
    # All of it is free again: as much as ever fits.
    value = b"w" * 1_000_000
    for number in range(300):
        assert ask(server.address, b"set k%d 0 0 %d\r\n%s\r\n" % (number, len(value), value)) == b"STORED\r\n"
    server.check_alive()


def test_clients_that_pause_within_long_values_hold_up_nobody(one):
    """What the store has no room for is collected."""
    server, _ = with_metrics(one, "-t", "1")
    value = b"v" * 1_000_000
    paused = [connect(server.address) for _ in range(20)]
    for number, sock in enumerate(paused):
        sock.sendall(b"set paused%d 0 0 %d\r\n%s" % (number, len(value), value[: 90_000 * (1 + number % 10)]))
    for number in range(20):
        assert ask(server.address, b"set k%d 0 0 %d\r\n%s\r\n" % (number, len(value), value)) == b"STORED\r\n"
    outcomes = []
    for number, sock in enumerate(paused):
        with sock, sock.makefile("rb") as heard:
            sock.sendall(value[90_000 * (1 + number % 10) :] + b"\r\n")
            outcomes.append(heard.readline())
    assert set(outcomes) <= {b"STORED\r\n", b"SERVER_ERROR out of memory storing object\r\n"}
    assert b"STORED\r\n" in outcomes
    for number, outcome in enumerate(outcomes):
        got = ask(server.address, b"get paused%d\r\n" % number, b"END\r\n")
        assert (outcome == b"STORED\r\n") == (got.count(b"v") >= len(value)), number
    server.check_alive()


def test_its_doctor_examines_both_halves_and_starts_nothing(directory):
    def examined(*flags):
        words = [egret_binary("egret-memcached"), *AS_ROOT, "-p", str(free_port()), *flags, "--doctor"]
        done = subprocess.run(words, capture_output=True, text=True, timeout=60)
        return done.returncode, done.stdout.splitlines(), done.stderr
    status, lines, errors = examined("-l", "127.0.0.1", "-o", f"egret_listen=shm:{directory}/slots")
    assert (status, errors) == (0, ""), lines
    subjects = {line[5:].split(":")[0] for line in lines}
    assert {"sessions", "huge pages", "listen shm", "listen tcp", "open files"} <= subjects, lines
    assert not [line for line in lines if line.startswith("FAIL")]
    status, lines, _ = examined("-l", "192.0.2.1")  # no address of this host
    assert status == 1 and [line for line in lines if line.startswith("FAIL listen tcp:192.0.2.1:")], lines
