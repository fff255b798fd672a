#!/usr/bin/env python3
"""load.py TOTALS [SECONDS]: in the guest. Clients that note every connect that is refused, every request that stays without its
answer and every value that was not the one set. Writes its totals, as JSON, into the file TOTALS now and then and at its end (SIGTERM).

    steady    ask on one connection, one request at a time        pipelined  ask for many at once
    fleeting  connect, ask once, and leave                        busy       ask again as soon as they are answered
"""
import json, os, signal, socket, sys, threading, time

SERVER = ("127.0.0.1", 11211)
PATIENCE_SECONDS = 120
PAUSE_SECONDS = 0.05
PIPELINE = 8
KEYS = 8


class Unanswered(Exception):
    pass


class Client(threading.Thread):
    """One client, and what it met with. Reads answers of set and get only."""

    def __init__(self, number, pipeline=1, requests_per_connection=None, pause=PAUSE_SECONDS):
        super().__init__(daemon=True)
        self.prefix, self.pipeline, self.requests_per_connection, self.pause = f"load-{number}", pipeline, requests_per_connection, pause
        self.totals = dict.fromkeys(("connects", "refused", "requests", "answers", "unanswered", "errors", "wrong", "misses", "hits", "closed"), 0)
        self.first_fault = ""
        self.turn = 0
        self.possible = {}  # key → what a get may bring; None is a miss, which a restarted backend may answer at any time
        self.stopping = False

    def run(self):
        while not self.stopping:
            try:
                self.totals["connects"] += 1
                with socket.create_connection(SERVER, PATIENCE_SECONDS) as connection:
                    self.converse(connection)
            except ConnectionRefusedError as fault:
                self.fault("refused", 1, fault)
            except OSError as fault:
                self.fault("refused", 1, fault)
            time.sleep(PAUSE_SECONDS)

    def fault(self, kind, count, what):
        self.totals[kind] += count
        self.first_fault = self.first_fault or f"{self.prefix} {time.strftime('%T')} {kind}: {what!r}"

    def converse(self, connection):
        asked = 0
        received = connection.makefile("rb")
        while not self.stopping and asked != self.requests_per_connection:
            if self.is_closed(connection):
                self.totals["closed"] += 1  # between two requests: no harm
                return
            batch = [self.request() for _ in range(self.pipeline)]
            answered = 0
            self.totals["requests"] += len(batch)
            try:
                connection.sendall(b"".join(text for text, _, _ in batch))
                for _, key, value in batch:
                    self.judge(key, value, self.answer(received))
                    answered += 1
                    self.totals["answers"] += 1
            except (OSError, Unanswered) as fault:
                self.fault("unanswered", len(batch) - answered, fault)
                for _, key, value in batch[answered:]:
                    if value is not None:
                        self.possible.setdefault(key, set()).add(value)
                return
            asked += 1
            time.sleep(self.pause)

    def is_closed(self, connection):
        connection.setblocking(False)
        try:
            return connection.recv(1, socket.MSG_PEEK) == b""
        except BlockingIOError:
            return False
        except OSError:
            return True
        finally:
            connection.settimeout(PATIENCE_SECONDS)

    def request(self):
        """The next: its text, its key, and what it sets (None: it is a get)."""
        self.turn += 1
        key = f"{self.prefix}-{self.turn // 2 % KEYS}"
        if self.turn % 2:
            value = f"{self.turn:08}".encode() * 40
            return b"set %s 0 0 %d\r\n%s\r\n" % (key.encode(), len(value), value), key, value
        return b"get %s\r\n" % key.encode(), key, None

    def line(self, received):
        line = received.readline()
        if not line.endswith(b"\r\n"):
            raise Unanswered(line)
        return line[:-2]

    def answer(self, received):
        """An answer's first line, and the value that came with it."""
        first = self.line(received)
        if not first.startswith(b"VALUE "):
            return first, None
        length = int(first.split()[3])
        value = received.read(length + 2)
        if len(value) != length + 2 or self.line(received) != b"END":
            raise Unanswered(first)
        return first, value[:-2]

    def judge(self, key, value, answer):
        first, got = answer
        if first.startswith(b"SERVER_ERROR"):
            self.totals["errors"] += 1
            if value is not None:  # done or not
                self.possible.setdefault(key, set()).add(value)
        elif value is not None:
            if first != b"STORED":
                self.fault("wrong", 1, first)
            self.possible[key] = {value}
        elif got is not None:
            self.totals["hits"] += 1
            if got not in self.possible.get(key, ()):
                self.fault("wrong", 1, (key, got[:16]))
        elif first == b"END":
            self.totals["misses"] += 1
        else:
            self.fault("wrong", 1, first)


def write_totals(clients, target):
    totals = {name: sum(client.totals[name] for client in clients) for name in clients[0].totals}
    totals["faults"] = [client.first_fault for client in clients if client.first_fault]
    with open(f"{target}.part", "w") as file:
        json.dump(totals, file)
    os.rename(f"{target}.part", target)


def main():
    target, seconds = sys.argv[1], float(sys.argv[2]) if len(sys.argv) > 2 else 1e9
    clients = [Client(0), Client(1), Client(2), Client(3, pipeline=PIPELINE), Client(4, pipeline=PIPELINE),
               Client(5, requests_per_connection=1), Client(6, requests_per_connection=1), Client(7, pause=0)]
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    for client in clients:
        client.start()
    deadline = time.monotonic() + seconds
    while not stop.wait(1) and time.monotonic() < deadline:
        write_totals(clients, target)
    for client in clients:
        client.stopping = True
    for client in clients:
        client.join()
    write_totals(clients, target)


main()
