"""A client that is the only one to write its keys, and so knows what it may read while backends die and come back."""

import random
import threading

import servers


class SoleWriter(threading.Thread):
    """Sets and gets its keys through one connection until told to stop. A get returns what was acknowledged last or, if a set has failed
    since, what that one would have stored: it may have been done. Once `may_miss` is set, nothing, too: a backend died. From the first miss
    on, what was acknowledged before is not to be read again."""

    KEYS = 16
    SIZES = [10] * 12 + [100] * 12 + [1000] * 4 + [3000] * 4 + [5000] * 6 + [70_000, 300_000]

    def __init__(self, address, name):
        super().__init__(daemon=True)
        self.address = address
        self.keys = [f"{name}-{number}".encode() for number in range(self.KEYS)]
        self.acknowledged, self.doubtful = {}, {key: [] for key in self.keys}
        self.served = set()  # keys that were set and answered since the test has emptied it
        self.answers = self.errors = self.misses = 0
        self.wrong = []
        self.may_miss = False
        self.stopping = threading.Event()
        self.rng = random.Random(name)

    def run(self):
        try:
            with servers.connect(self.address) as sock:
                self.stream = sock.makefile("rb")
                turn = 0
                while not self.stopping.is_set() and not self.wrong:
                    turn += 1
                    key = self.keys[turn % self.KEYS]
                    self.set(sock, key, turn)
                    self.get(sock, key if turn % 2 else self.rng.choice(self.keys))
        except (OSError, ValueError) as error:
            self.wrong.append(f"the proxy's connection: {error}")

    def set(self, sock, key, turn):
        head = b"%s:%d:" % (key, turn)
        value = head * (self.rng.choice(self.SIZES) // len(head) + 1)
        sock.sendall(b"set %s 0 0 %d\r\n%s\r\n" % (key, len(value), value))
        line = self.stream.readline()
        if line == b"STORED\r\n":
            self.acknowledged[key] = value
            self.doubtful[key] = []
            self.served.add(key)
            self.answers += 1
        elif line.startswith(b"SERVER_ERROR"):
            self.doubtful[key].append(value)
            self.errors += 1
        else:
            self.wrong.append(line)

    def get(self, sock, key):
        sock.sendall(b"get %s\r\n" % key)
        line = self.stream.readline()
        if line.startswith(b"SERVER_ERROR"):
            self.errors += 1
            return
        value = None
        if line.startswith(b"VALUE "):
            value = self.stream.read(int(line.split()[3]) + 2)[:-2]
            line = self.stream.readline()
        if line != b"END\r\n":
            self.wrong.append(line)
            return
        self.answers += 1
        known = self.acknowledged.get(key)
        if value is None:
            self.misses += 1
            if known is not None and not self.may_miss:
                self.wrong.append(f"{key}: gone")
            self.acknowledged.pop(key, None)
        elif value != known and value not in self.doubtful[key]:
            self.wrong.append(f"{key}: read {value[:40]}, {len(value)} bytes; set {(known or b'')[:40]}, {len(known or b'')} bytes")

    def check(self):
        assert not self.wrong, self.wrong

    def end(self):
        self.stopping.set()
        self.join(60 * servers.SLACK)
        assert not self.is_alive(), f"{self.name} waits for an answer that does not come"
        self.check()
