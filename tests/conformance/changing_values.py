"""Long values that are replaced, extended and deleted while others read them. Each is one letter, so a reader sees when parts of two
come together."""

import random
import socket
import threading

from servers import stats_of

KEYS = [b"changing%d" % number for number in range(30)]
WRITERS = 3
ANSWERS = (b"STORED\r\n", b"DELETED\r\n", b"NOT_FOUND\r\n", b"NOT_STORED\r\n", b"TOUCHED\r\n")


def _change(address, number, failures):
    chance = random.Random(number)
    own = KEYS[10 * number:10 * number + 10]
    of_one = own[3:]  # of writer 0 the first three are everybody's
    with socket.create_connection(address, timeout=60) as sock:
        for _ in range(250):
            key = chance.choice(own + KEYS[:3])
            letter = chance.choice([b"a", b"b", b"c", b"d", b"e"])
            value = letter * chance.choice([20_000, 70_000, 100_000, 130_000, 400_000])
            verb = chance.choice([b"set", b"set", b"delete", b"touch"])
            tail = {b"set": b" 0 0 %d\r\n%s\r\n" % (len(value), value), b"touch": b" 100\r\n", b"delete": b"\r\n"}[verb]
            requests = [b"%s %s%s" % (verb, key, tail)]
            if verb == b"set" and key in of_one:  # appends to keys that nobody else changes
                requests.append(b"append %s 0 0 30000\r\n%s\r\n" % (key, letter * 30_000))
            for request in requests:
                sock.sendall(request)
                answer = sock.recv(100)
                if answer not in ANSWERS:
                    failures.append(answer)


def read_answers(heard, gets, failures):
    """How many hits the answers to so many gets have."""
    hits = 0
    for _ in range(gets):
        while (line := heard.readline()) != b"END\r\n":
            length = int(line.split()[3])
            value = heard.read(length + 2)
            hits += 1
            if value[:-2] != value[:1] * length or not value.endswith(b"\r\n"):
                failures.append(line)
    return hits


def _read(address, depth, over, hits, failures):
    with socket.create_connection(address, timeout=60) as sock, sock.makefile("rb") as heard:
        while not over.is_set():
            sock.sendall(depth * (b"get " + b" ".join(KEYS[::2]) + b"\r\n"))
            hits.append(read_answers(heard, depth, failures))


def check(address):
    failures, hits, over = [], [], threading.Event()
    writers = [threading.Thread(target=_change, args=(address, number, failures)) for number in range(WRITERS)]
    readers = [threading.Thread(target=_read, args=(address, depth, over, hits, failures)) for depth in (1, 1, 8)]
    for thread in writers + readers:
        thread.start()
    for thread in writers:
        thread.join()
    over.set()
    for thread in readers:
        thread.join()
    assert failures == [] and sum(hits) > 100
    assert int(stats_of(address)["curr_items"]) > 0
