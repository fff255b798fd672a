"""Clients that work while calls fail. An error is an answer, and so is a closed connection; a wrong value, or no answer, is not."""

import random
import re
import threading
import urllib.error
import urllib.request

from dialog import show
from servers import SLACK, connect

# Far beyond every time limit of the daemons: who is not answered by then hangs.
HANG_SECONDS = 20


class Worker:
    """Work in a thread, again and again until it is stopped; what it finds wrong is raised by stop()."""

    def __init__(self, pause=0.0):
        self.pause = pause
        self.turns = 0  # that were served
        self.errors = 0
        self.failure = None
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self._work)
        self.thread.start()

    def _work(self):
        try:
            while not self.stopping.is_set():
                self.turn()
                self.stopping.wait(self.pause)
        except BaseException as failure:  # told to the test's thread
            self.failure = failure

    def stop(self):
        self.stopping.set()
        self.thread.join(3 * HANG_SECONDS * SLACK)
        assert not self.thread.is_alive(), f"{self} hangs"
        assert self.failure is None, f"{self}: {self.failure!r}"

    def __str__(self):
        return type(self).__name__


class Witness(Worker):
    """One key that nobody else writes: sets a value with a number, gets it, and knows which numbers it may hear.

    A set that was answered is in force. One that ended in an error may have been done or not, even after a later one if that
    went by another session; and as in memcached, the old value may be gone."""

    def __init__(self, address, key, size, new_connections=False):
        self.address = address
        self.key = key
        self.size = size
        self.new_connections = new_connections
        self.number = 0
        self.in_force = None
        self.unsure = set()
        self.may_be_gone = True
        self.sock = None
        super().__init__(0.001)

    def __str__(self):
        return f"the witness of {self.key.decode()}, number {self.number}"

    def value(self, number):
        unit = b"%d." % number
        return (unit * (self.size // len(unit) + 1))[: self.size]

    def turn(self):
        try:
            if self.sock is None:
                self.sock = connect(self.address, HANG_SECONDS)
                self.lines = self.sock.makefile("rb")
            self.set_one()
            self.get_one()
        except TimeoutError as late:
            raise AssertionError(f"no answer within {HANG_SECONDS * SLACK:.0f} s") from late
        except OSError:
            self.errors += 1
            self.drop()
        if self.new_connections:
            self.drop()

    def drop(self):
        if self.sock is not None:
            self.lines.close()
            self.sock.close()
        self.sock = None

    def line(self):
        line = self.lines.readline()
        if not line.endswith(b"\r\n"):
            raise ConnectionError("closed")
        return line

    def set_one(self):
        self.number += 1
        self.unsure.add(self.number)
        gone_before = self.may_be_gone
        self.may_be_gone = True
        value = self.value(self.number)
        self.sock.sendall(b"set %s 0 0 %d\r\n%s\r\n" % (self.key, len(value), value))
        line = self.line()
        if line == b"STORED\r\n":
            self.unsure.discard(self.number)
            self.in_force, self.may_be_gone = self.number, False
        else:
            assert line.startswith(b"SERVER_ERROR "), show(line)
            self.errors += 1
            self.may_be_gone |= gone_before

    def get_one(self):
        self.sock.sendall(b"get %s\r\n" % self.key)
        line = self.line()
        if line.startswith(b"SERVER_ERROR "):
            self.errors += 1
            return
        if line == b"END\r\n":
            assert self.may_be_gone, "an item that was stored is gone"
            return
        head = re.fullmatch(rb"VALUE (\S+) 0 (\d+)\r\n", line)
        assert head and head[1] == self.key and int(head[2]) == self.size, show(line)
        value = self.lines.read(self.size + len(b"\r\nEND\r\n"))
        if len(value) < self.size + len(b"\r\nEND\r\n"):
            raise ConnectionError("closed")
        assert value.endswith(b"\r\nEND\r\n"), show(value[-20:])
        number = int(value.split(b".", 1)[0])
        assert value[: self.size] == self.value(number), f"a mixed value {show(value)}"
        assert number == self.in_force or number in self.unsure, f"number {number}, but {self.in_force} is in force"
        self.turns += 1

    def stop(self):
        try:
            super().stop()
        finally:
            self.drop()


class Asker(Worker):
    """Asks one thing on a connection of its own, which it reads for a while and closes."""

    def __init__(self, address, request, is_answer, pause=0.02):
        self.address = address
        self.request = request
        self.is_answer = is_answer
        super().__init__(pause)

    def __str__(self):
        return f"who asks {self.request!r}"

    def turn(self):
        try:
            with connect(self.address, HANG_SECONDS) as sock:
                sock.sendall(self.request)
                answer = sock.recv(65536)
        except TimeoutError as late:
            raise AssertionError(f"no answer within {HANG_SECONDS * SLACK:.0f} s") from late
        except OSError:
            answer = b""
        if not answer or answer.startswith((b"SERVER_ERROR ", b"WATCHER_TOO_MANY ")):
            self.errors += 1
            return
        assert self.is_answer(answer), show(answer)
        self.turns += 1


def read_metrics(port):
    """The page, or None: no answer, or an error."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=HANG_SECONDS * SLACK) as page:
            return page.read().decode()
    except TimeoutError as late:
        raise AssertionError(f"no page within {HANG_SECONDS * SLACK:.0f} s") from late
    except (OSError, urllib.error.URLError, ValueError) as error:
        if isinstance(getattr(error, "reason", None), TimeoutError):
            raise AssertionError(f"no page within {HANG_SECONDS * SLACK:.0f} s") from error
        return None
    except Exception:  # http.client's: the connection was closed in the middle
        return None


class MetricsReader(Worker):
    def __init__(self, port):
        self.port = port
        super().__init__(0.03)

    def turn(self):
        page = read_metrics(self.port)
        if page is None:
            self.errors += 1
            return
        assert "egret_" in page, show(page.encode())
        self.turns += 1


class Sessions(Worker):
    """Ends a session now and then, so that there is always one in the making."""

    def __init__(self, relay, seed):
        self.relay = relay
        self.rng = random.Random(seed)
        self.is_paused = True
        super().__init__(0.03)

    def turn(self):
        if not self.is_paused:
            self.relay.end_one(self.rng)
            self.turns += 1


class Reloads(Worker):
    def __init__(self, daemons, number):
        self.daemons = daemons
        self.number = number
        super().__init__(0.15)

    def turn(self):
        for daemon in self.daemons:
            daemon.signal(self.number)
        self.turns += 1
