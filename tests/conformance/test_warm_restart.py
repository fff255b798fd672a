"""warm_restart: a clean stop and start keeps every item, CAS, flag and expiry; whatever else a file holds, the backend starts
empty, says why, and works.

The proxy lives on through it all: a client sees errors while the backend is away, and then its items.
"""

import os
import pathlib
import random
import re
import shutil
import signal
import tempfile
import threading
import time

import pytest

from dialog import Case, converse
from servers import SUT, Egret, ask, connect, stats_of, wait_for

pytestmark = pytest.mark.skipif(SUT != "egret", reason="memcached's own is another option")

SIZES = [0, 1, 32, 500, 5_000, 100_000, 1_000_000]


@pytest.fixture
def folder():
    path = pathlib.Path(tempfile.mkdtemp(prefix="egret-warm.", dir="/dev/shm"))
    yield path
    shutil.rmtree(path)


class Warm(Egret):
    """An Egret whose store is kept in `folder`; its backend is stopped and started while the proxy stays."""

    def __init__(self, folder, **backend):
        super().__init__(backend={"memory": "64MiB", "partitions": 2, "warm_restart": folder, "log_level": "info", **backend})

    def restart(self, how=signal.SIGTERM, **changed):
        self.backend.signal(how)
        status = self.backend.wait()
        assert status == (0 if how == signal.SIGTERM else -how), f"status {status}\n{self.backend.log()}"
        self.backend_options.update(changed)
        self.start_backend()
        assert self.wait_ready()

    def said(self):
        """The backend's line on what it has kept."""
        return wait_for(lambda: re.search(r"warm restart: (.*) \[warm_restart(?:_failed)?\]", self.backend.log()), "the line on warm restart")[1]


@pytest.fixture
def warm(folder):
    made = []

    def make(**backend):
        made.append(Warm(folder, **backend))
        return made[-1]

    yield make
    for each in made:
        each.stop()


def item(number):
    """Key, client flags and value."""
    size = SIZES[number % len(SIZES)] if number % 50 == 0 else number % 300
    return b"warm%d" % number, number * 7919 % 2**32, random.Random(number).randbytes(size).replace(b"<", b">")  # see dialog.Case


def store(server, numbers, exptime=lambda number: 0):
    text = b""
    for number in numbers:
        key, flags, value = item(number)
        text += b"set %s %d %d %d\r\n%s\r\n" % (key, flags, exptime(number), len(value), value)
    answer = converse(server.address, [Case(text)])[0][0]
    assert answer == b"STORED\r\n" * len(numbers)


def read(server, numbers):
    """What gets says of each, CAS and all."""
    return [converse(server.address, [Case(b"gets %s\r\n" % item(number)[0])])[0][0] for number in numbers]


def cas_of(answer):
    return int(re.search(rb"VALUE \S+ \d+ \d+ (\d+)\r\n", answer)[1])


def sound(server):
    """Where the build can tell: every partition's store passes the checker."""
    answer = ask(server.address, b"stats egret check\r\nversion\r\n", end=b"1.6.45\r\n", timeout=60)
    partitions = server.backend_options["partitions"]
    good = b"".join(b"STAT partition_%d ok\r\n" % n for n in range(partitions)) + b"END\r\n"
    assert answer.removesuffix(b"VERSION 1.6.45\r\n") in (good, b"ERROR\r\n"), answer


def test_everything_is_kept(warm):
    server = warm()
    numbers = range(1_000)
    store(server, numbers)
    before = read(server, numbers)
    assert all(b"VALUE" in answer for answer in before)
    for _ in range(2):
        server.restart()
        assert server.said() == "1000 items kept"
        assert read(server, numbers) == before
        assert stats_of(server.address)["curr_items"] == "1000"
        sound(server)
    # What has been given out is not given out again, and what was learnt still counts.
    cas = b"%d" % cas_of(before[1])
    assert ask(server.address, b"cas warm1 5 0 3 %s\r\nnew\r\n" % cas) == b"STORED\r\n"
    assert ask(server.address, b"cas warm1 5 0 3 %s\r\nnew\r\n" % cas) == b"EXISTS\r\n"
    store(server, numbers)
    newer = map(cas_of, read(server, numbers))
    assert all(new > old for new, old in zip(newer, map(cas_of, before)))
    sound(server)


def test_time_goes_on(warm):
    """What expires while nobody serves is gone; what has time left stays; a flush that was pending comes."""
    server = warm()
    store(server, range(10), exptime=lambda number: 2)
    store(server, range(10, 20), exptime=lambda number: 1_000)
    server.restart()
    server.backend.signal(signal.SIGTERM)
    server.backend.wait()
    time.sleep(2.1)
    server.start_backend()
    assert server.wait_ready()
    answers = read(server, range(20))
    assert [b"VALUE" in answer for answer in answers] == [False] * 10 + [True] * 10
    assert ask(server.address, b"flush_all 2\r\n") == b"OK\r\n"
    server.restart()
    time.sleep(2.1)
    assert read(server, range(10, 20)) == [b"END\r\n"] * 10


def test_killed_starts_empty_and_works(warm):
    server = warm()
    store(server, range(300))
    server.restart(signal.SIGKILL)
    assert re.fullmatch(r"started empty: \S+/partition-0: the process before was killed, not stopped", server.said())
    assert read(server, range(300)) == [b"END\r\n"] * 300
    sound(server)
    store(server, range(300))
    server.restart()
    assert server.said() == "300 items kept"
    sound(server)


def test_other_options_start_empty_and_say_which(warm):
    server = warm()
    for changed, why in (
        ({"memory": "32MiB"}, "another size: memory or partitions has changed"),
        ({"memory": "64MiB"}, "another size: memory or partitions has changed"),
        ({"partitions": 3, "memory": "96MiB"}, "partition-2 is missing: partitions has changed"),
        ({"partitions": 2, "memory": "64MiB"}, "partitions has changed"),
        ({"item_size_max": "2MiB"}, "item_size_max has changed"),
        ({"evict": "false"}, "evict has changed"),
    ):
        store(server, range(100))
        server.restart(**changed)
        assert server.said().startswith("started empty: ") and server.said().endswith(why), (changed, server.said())
        assert read(server, range(100)) == [b"END\r\n"] * 100
        sound(server)


@pytest.mark.parametrize("damage", ["garbage", "head", "zeros", "short", "one"])
def test_damaged_files_start_empty_and_work(warm, folder, damage):
    server = warm()
    store(server, range(300))
    server.backend.signal(signal.SIGTERM)
    server.backend.wait()
    for path in [folder / "partition-1"] if damage == "one" else sorted(folder.iterdir()):
        size = path.stat().st_size
        if damage == "short":
            os.truncate(path, size // 2)
        else:
            with open(path, "r+b") as file:
                bad = b"\0" if damage == "zeros" else b"\xa5"
                file.write(bad * (64 if damage == "head" else size))
    server.start_backend()
    assert server.wait_ready()
    assert server.said().startswith("started empty: "), server.said()
    assert read(server, range(300)) == [b"END\r\n"] * 300
    store(server, range(300))
    # Through all of it, several times over.
    converse(server.address, [Case(b"".join(b"set much%d 0 0 50000 noreply\r\n%s\r\n" % (n, b"m" * 50_000) for n in range(4_000)))])
    assert b"VALUE much3999" in ask(server.address, b"get much3999\r\n", end=b"END\r\n")
    sound(server)


def test_stopped_under_load(warm):
    """Clients store as fast as they can while the backend is told to stop: what was acknowledged is there."""
    server = warm(memory="256MiB")
    stopping = threading.Event()
    acknowledged = [{} for _ in range(6)]

    def client(index):
        """One set at a time; a large one now and then, so that some are under way in parts when the end comes."""
        mine = acknowledged[index]
        number = 0
        while not stopping.is_set():
            try:
                with connect(server.address) as sock:
                    while not stopping.is_set():
                        key = b"load%d-%d" % (index, number % 2_000)
                        size = 300_000 if number % 100 == index else 10 + number % 90
                        value = (b"%d." % number).ljust(size, b"v")
                        sock.sendall(b"set %s %d 0 %d\r\n%s\r\n" % (key, number, size, value))
                        answer = b""
                        while not answer.endswith(b"\r\n"):
                            piece = sock.recv(4096)
                            if not piece:
                                raise OSError("closed")
                            answer += piece
                        mine[key] = (b"VALUE %s %d %d\r\n%s\r\nEND\r\n" % (key, number, size, value)) if answer == b"STORED\r\n" else None
                        number += 1
                        if answer != b"STORED\r\n":
                            return
            except OSError:
                return

    clients = [threading.Thread(target=client, args=(index,)) for index in range(len(acknowledged))]
    for each in clients:
        each.start()
    wait_for(lambda: all(len(mine) > 200 for mine in acknowledged), "some load")
    server.backend.signal(signal.SIGTERM)
    assert server.backend.wait() == 0
    stopping.set()
    for each in clients:
        each.join()
    server.start_backend()
    assert server.wait_ready()
    assert re.fullmatch(r"\d+ items kept", server.said()), server.said()
    checked = 0
    for mine in acknowledged:
        # One whose set was answered by an error may have either value.
        for key, answer in mine.items():
            if answer is not None:
                assert ask(server.address, b"get %s\r\n" % key, end=b"END\r\n") == answer
                checked += 1
    assert checked > 1_000
    sound(server)


def test_one_partition_in_a_file_of_that_name(folder, warm):
    server = warm(partitions=1, warm_restart=folder / "items")
    store(server, range(50))
    server.restart()
    assert server.said() == "50 items kept"
    assert [path.name for path in folder.iterdir()] == ["items.0"]


def test_two_backends_on_one_file(warm, folder):
    """The second is refused, and the first does not notice."""
    server = warm()
    store(server, range(50))
    second = Warm.__new__(Warm)
    Egret.__init__(second, backend={**server.backend_options}, start=False)
    try:
        second.start_backend()
        assert second.backend.wait() == 1
        assert re.search(r"egret-backend: partition 0: warm_restart: another process holds \S+/partition-0", second.backend.log())
    finally:
        second.stop()
    assert all(b"VALUE" in answer for answer in read(server, range(50)))
    server.restart()
    assert server.said() == "50 items kept"


def test_expired_items_go_on_an_idle_host(warm):
    """Nobody asks for anything for longer than a turn of the sweep: all that has expired is gone, and at next to no cost."""
    server = warm()
    store(server, range(1_000), exptime=lambda number: 1)
    store(server, range(1_000, 1_010))
    time.sleep(1)
    ticks = server.backend.cpu_ticks()
    time.sleep(21)
    assert server.backend.cpu_ticks() - ticks <= 2
    assert stats_of(server.address)["curr_items"] == "10"
