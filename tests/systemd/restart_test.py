#!/usr/bin/env python3
"""restart_test.py BUILD: what clients see of a stop of egret-proxy, and of a restart: with a service manager that keeps descriptors
(this file is one) they do not notice it; without one, all that was sent is answered, and then they see the end."""
import os, pathlib, re, signal, socket, struct, subprocess, sys, tempfile, threading, time, unittest

from daemons import WAIT_SECONDS, Supervised

BUILD = pathlib.Path(sys.argv.pop(1)).resolve()
ROOT = pathlib.Path(__file__).resolve().parents[2]
RESTARTS = 8


class Manager:
    """What systemd does for a unit with FileDescriptorStoreMax= and a socket: it listens, starts, and keeps what it is given."""

    def __init__(self, folder, command, places):
        self.folder, self.command, self.places = folder, command, places
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.address = self.listener.getsockname()
        self.store = []  # (name, descriptor)
        self.process = None
        self.log = open(f"{folder}/proxy.log", "a+b")

    def start(self, *options):
        """Returns when it is ready."""
        path = f"{self.folder}/notify"
        if os.path.exists(path):
            os.unlink(path)
        self.notices = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.notices.bind(path)
        descriptors = [self.listener.fileno()] + [fd for _, fd in self.store]
        names = ["clients"] + [name for name, _ in self.store]
        code = ("import os, sys\n"
                "fds = [int(fd) for fd in sys.argv[1].split(',')]\n"
                "high = [os.dup2(fd, 5000 + i) for i, fd in enumerate(fds)]\n"
                "for i, fd in enumerate(high): os.dup2(fd, 3 + i)\n"
                "os.closerange(3 + len(fds), 8192)\n"
                "os.environ['LISTEN_PID'] = str(os.getpid())\n"
                "os.execv(sys.argv[2], sys.argv[2:])\n")
        sets = [word for option in options for word in ("--set", option)]
        environment = os.environ | {"NOTIFY_SOCKET": path, "LISTEN_FDS": str(len(descriptors)), "LISTEN_FDNAMES": ":".join(names)}
        if self.places:
            environment["FDSTORE"] = str(self.places)
        self.process = subprocess.Popen(
            ["/usr/bin/python3", "-c", code, ",".join(map(str, descriptors)), *self.command, *sets], env=environment,
            pass_fds=descriptors, stdin=subprocess.DEVNULL, stderr=self.log)
        self.is_ready = threading.Event()
        self.over = threading.Event()
        self.reader = threading.Thread(target=self.read_notices, args=(self.notices,))
        self.reader.start()
        assert self.is_ready.wait(WAIT_SECONDS), "the proxy did not start"

    def read_notices(self, notices):
        notices.settimeout(0.05)
        while True:
            try:
                text, descriptors, _, _ = socket.recv_fds(notices, 65536, 253)
            except TimeoutError:
                if self.over.is_set():
                    return
                continue
            lines = dict(line.split("=", 1) for line in text.decode().split("\n") if "=" in line)
            if lines.get("FDSTORE") == "1":
                assert len(self.store) + len(descriptors) <= self.places
                self.store += [(lines["FDNAME"], fd) for fd in descriptors]
            else:  # a barrier's, above all
                for fd in descriptors:
                    os.close(fd)
            if lines.get("FDSTOREREMOVE") == "1":
                gone = [fd for name, fd in self.store if name == lines["FDNAME"]]
                self.store = [(name, fd) for name, fd in self.store if name != lines["FDNAME"]]
                for fd in gone:
                    os.close(fd)
            if "READY" in lines:
                self.is_ready.set()

    def stop(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        status = self.process.wait(WAIT_SECONDS)
        self.over.set()
        self.reader.join()
        self.notices.close()
        return status

    def restart(self, *options):
        assert self.stop() == 0
        self.start(*options)

    def forget(self):
        """As systemd does when a stopped unit is not to start again."""
        for _, fd in self.store:
            os.close(fd)
        self.store = []

    def said(self):
        return pathlib.Path(self.log.name).read_text()

    def close(self):
        if self.process and not self.over.is_set():
            self.stop()
        self.forget()
        self.listener.close()
        self.log.close()


def halt(process):
    """It stands still, all of it, until SIGCONT."""
    os.kill(process.pid, signal.SIGSTOP)
    tasks = list(pathlib.Path(f"/proc/{process.pid}/task").iterdir())
    while not all("\nState:\tT" in (task / "status").read_text() for task in tasks):
        time.sleep(0.001)


class Client:
    def __init__(self, address):
        self.socket = socket.create_connection(address, WAIT_SECONDS)

    def send(self, request):
        self.socket.sendall(request)

    def read(self, end):
        answer = b""
        while not answer.endswith(end):
            part = self.socket.recv(65536)
            if not part:
                raise EOFError(answer)
            answer += part
        return answer

    def ask(self, request, end=b"\r\n"):
        self.send(request)
        return self.read(end)

    def close(self):
        self.socket.close()


class Restart(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="egret-restart-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.where = f"shm:{self.folder}/backend.sock"
        self.backend = Supervised(self.folder, [f"{BUILD}/egret-backend", "--set", f"listen={self.where}"])
        self.addCleanup(self.backend.close)
        self.backend.notice("READY=1")

    def manager(self, places, *options):
        manager = Manager(self.folder, [f"{BUILD}/egret-proxy", "--set", f"backends={self.where}", "--set", "workers=2"], places)
        self.addCleanup(manager.close)
        manager.start(*options)
        return manager

    def client(self, manager):
        client = Client(manager.address)
        self.addCleanup(client.close)
        return client


class Backend(Restart):
    def test_what_it_was_asked_is_answered_before_it_ends(self):
        manager = self.manager(0)
        clients = [self.client(manager) for _ in range(24)]
        for client in clients:
            self.assertEqual(client.ask(b"mn\r\n"), b"MN\r\n")
        halt(self.backend.process)
        for number, client in enumerate(clients):
            client.send(b"set k%d 0 0 1\r\nx\r\nget k%d\r\nmn\r\n" % (number, number))
            time.sleep(0.01)  # the proxy passes it on, in a message of its own
        self.backend.process.terminate()
        os.kill(self.backend.process.pid, signal.SIGCONT)
        for number, client in enumerate(clients):
            self.assertEqual(client.read(b"MN\r\n"), b"STORED\r\nVALUE k%d 0 1\r\nx\r\nEND\r\nMN\r\n" % number)
        self.assertEqual(self.backend.process.wait(WAIT_SECONDS), 0)


class WithStore(Restart):
    def test_clients_go_on_as_what_they_were(self):
        manager = self.manager(100)
        fresh, text, binary = (self.client(manager) for _ in range(3))
        self.assertEqual(text.ask(b"set k 0 0 1\r\nx\r\n"), b"STORED\r\n")
        noop = struct.pack(">BBHBBHIIQ", 0x80, 0x0a, 0, 0, 0, 0, 0, 0, 0)
        self.assertEqual(binary.ask(noop, b"\0" * 16)[:2], b"\x81\x0a")
        self.assertEqual(self.client(manager).ask(b"mn\r\n"), b"MN\r\n")
        manager.restart()
        self.assertEqual(manager.store, [])  # it took them all
        self.assertEqual(text.ask(b"get k\r\n", b"END\r\n"), b"VALUE k 0 1\r\nx\r\nEND\r\n")
        self.assertEqual(binary.ask(noop, b"\0" * 16)[:2], b"\x81\x0a")
        self.assertEqual(fresh.ask(b"mn\r\n"), b"MN\r\n")
        self.assertIn("4 clients are handed over", manager.said())
        self.assertIn("4 clients of the process before are taken over", manager.said())
        stats = text.ask(b"stats\r\n", b"END\r\n")
        self.assertIn(b"STAT curr_connections 4\r\n", stats)

    def test_clients_at_rest_go_on_likewise(self):
        manager = self.manager(100)
        fresh, text = self.client(manager), self.client(manager)
        self.assertEqual(text.ask(b"set k 0 0 1\r\nx\r\n"), b"STORED\r\n")
        for _ in range(2):
            time.sleep(2.5)  # nothing comes from them: they are at rest
            manager.restart()
        self.assertEqual(manager.store, [])
        time.sleep(2.5)
        self.assertEqual(text.ask(b"get k\r\n", b"END\r\n"), b"VALUE k 0 1\r\nx\r\nEND\r\n")
        self.assertEqual(fresh.ask(b"mn\r\n"), b"MN\r\n")
        self.assertIn("2 clients are handed over", manager.said())

    def test_what_is_sent_while_nobody_is_there_is_answered(self):
        manager = self.manager(100)
        client = self.client(manager)
        self.assertEqual(client.ask(b"mn\r\n"), b"MN\r\n")
        manager.stop()
        client.send(b"set k 0 0 1\r\ny\r\nget k\r\n")
        late = self.client(manager)
        late.send(b"get k\r\n")
        manager.start()
        self.assertEqual(client.read(b"END\r\n"), b"STORED\r\nVALUE k 0 1\r\ny\r\nEND\r\n")
        self.assertTrue(late.read(b"END\r\n").endswith(b"END\r\n"))

    def test_the_rest_of_a_request_is_waited_for(self):
        manager = self.manager(100)
        client = self.client(manager)
        client.send(b"mn\r\nset k 0 0 5\r\nhe")
        self.assertEqual(client.read(b"\r\n"), b"MN\r\n")
        manager.process.send_signal(signal.SIGTERM)
        client.send(b"llo\r\n")
        self.assertEqual(client.read(b"\r\n"), b"STORED\r\n")
        manager.restart()
        self.assertEqual(client.ask(b"get k\r\n", b"END\r\n"), b"VALUE k 0 5\r\nhello\r\nEND\r\n")

    def test_half_a_request_does_not_hold_up_the_end(self):
        manager = self.manager(100, "drain=200ms")
        half, whole = self.client(manager), self.client(manager)
        half.send(b"mn\r\nset k 0 0 5\r\nhe")
        self.assertEqual(half.read(b"\r\n"), b"MN\r\n")
        self.assertEqual(whole.ask(b"mn\r\n"), b"MN\r\n")
        manager.restart()
        self.assertEqual(half.socket.recv(100), b"")
        self.assertEqual(whole.ask(b"mn\r\n"), b"MN\r\n")

    def test_who_has_said_who_it_is_need_not_do_so_again(self):
        users = f"{self.folder}/users"
        pathlib.Path(users).write_text("anna:secret\n")
        manager = self.manager(100, f"auth_file={users}")
        known, stranger = self.client(manager), self.client(manager)
        self.assertEqual(known.ask(b"set auth 0 0 11\r\nanna secret\r\n"), b"STORED\r\n")
        self.assertEqual(stranger.ask(b"get k\r\n"), b"CLIENT_ERROR unauthenticated\r\n")
        manager.restart(f"auth_file={users}")
        self.assertEqual(known.ask(b"mn\r\n"), b"MN\r\n")
        self.assertEqual(stranger.ask(b"get k\r\n"), b"CLIENT_ERROR unauthenticated\r\n")
        self.assertEqual(stranger.ask(b"set auth 0 0 11\r\nanna secret\r\n"), b"STORED\r\n")

    def test_idle_time_goes_on_counting(self):
        manager = self.manager(100, "idle_timeout=3s")
        client = self.client(manager)
        self.assertEqual(client.ask(b"mn\r\n"), b"MN\r\n")
        manager.stop()
        [(name, _)] = manager.store
        self.assertRegex(name, r"^client/tn/\d+$")
        self.assertLess(abs(int(name.split("/")[2]) - time.monotonic()), WAIT_SECONDS)
        manager.store = [(f"client/ty/{int(time.monotonic()) - 10}", fd) for _, fd in manager.store]
        manager.start("idle_timeout=3s")
        self.assertEqual(client.socket.recv(100), b"")  # at once, not after another three seconds
        self.assertIn(b"STAT idle_kicks 1\r\n", self.client(manager).ask(b"stats\r\n", b"END\r\n"))

    def test_more_clients_than_places_and_than_connections(self):
        manager = self.manager(2)
        clients = [self.client(manager) for _ in range(3)]
        for client in clients:
            self.assertEqual(client.ask(b"mn\r\n"), b"MN\r\n")
        manager.stop()
        self.assertEqual(len(manager.store), 2)
        manager.start("max_connections=1")
        ends = sorted(self.outcome(client) for client in clients)
        self.assertEqual(ends, [b"", b"ERROR Too many open connections\r\n", b"MN\r\n"])

    def outcome(self, client):
        try:
            client.send(b"mn\r\n")
            return client.socket.recv(100)
        except OSError:
            return b""

    def test_a_client_that_has_gone_is_not_missed(self):
        manager = self.manager(100)
        gone, there = self.client(manager), self.client(manager)
        for client in gone, there:
            self.assertEqual(client.ask(b"mn\r\n"), b"MN\r\n")
        manager.stop()
        gone.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        gone.close()
        manager.start()
        self.assertEqual(there.ask(b"mn\r\n"), b"MN\r\n")
        self.assertIn(b"STAT curr_connections 1\r\n", there.ask(b"stats\r\n", b"END\r\n"))

    def test_a_stop_for_good_is_an_end(self):
        manager = self.manager(100)
        client = self.client(manager)
        self.assertEqual(client.ask(b"mn\r\n"), b"MN\r\n")
        manager.stop()
        manager.forget()
        self.assertEqual(client.socket.recv(100), b"")

    def test_after_a_kill_nothing_is_served_twice(self):
        manager = self.manager(100)
        client = self.client(manager)
        self.assertEqual(client.ask(b"mn\r\n"), b"MN\r\n")
        manager.restart()
        self.assertEqual(client.ask(b"mn\r\n"), b"MN\r\n")
        manager.stop(signal.SIGKILL)
        self.assertEqual(manager.store, [])
        self.assertEqual(self.outcome(client), b"")

    def test_names_of_another_version_do_not_keep_it_from_starting(self):
        manager = self.manager(100)
        client = self.client(manager)
        self.assertEqual(client.ask(b"mn\r\n"), b"MN\r\n")
        manager.stop()
        manager.store = [("client/of/2040/more", fd) for _, fd in manager.store]
        manager.start()
        self.assertEqual(self.outcome(client), b"")
        self.assertEqual(manager.store, [])

    def test_busy_clients_do_not_notice_restarts(self):
        """Pipelines with values small and large, over connections that last and new ones: not one answer is missing."""
        manager = self.manager(1000)
        over = threading.Event()
        failures, answered = [], [0] * 8

        def go_on(number):
            try:
                client = self.client(manager)
                key, turn = b"k%d" % number, 0
                value = b"v" * (100 if number % 2 else 20000)
                while not over.is_set():
                    turn += 1
                    if number >= 6:
                        client.close()
                        client = Client(manager.address)
                    request = b"set %s 0 0 %d\r\n%s\r\nget %s\r\nmn\r\n" % (key, len(value), value, key)
                    cut = turn * 7919 % len(request)
                    client.send(request[:cut])
                    client.send(request[cut:])
                    answer = client.read(b"MN\r\n")
                    if answer != b"STORED\r\nVALUE %s 0 %d\r\n%s\r\nEND\r\nMN\r\n" % (key, len(value), value):
                        raise AssertionError(f"client {number}: {answer[:100]!r}")
                    answered[number] += 1
                client.close()
            except Exception as error:  # noqa: BLE001
                failures.append((number, error))

        clients = [threading.Thread(target=go_on, args=(number,)) for number in range(len(answered))]
        for client in clients:
            client.start()
        try:
            for _ in range(RESTARTS):
                before = list(answered)
                while not failures and any(now < then + 5 for now, then in zip(answered, before)):
                    time.sleep(0.01)
                manager.restart()
        finally:
            over.set()
            for client in clients:
                client.join()
        self.assertEqual(failures, [], manager.said()[-3000:])


def places_of(unit):
    """How many descriptors systemd keeps for a unit, of which the unit's daemon is told."""
    text = (ROOT / "systemd" / unit).read_text()
    [most], [told] = re.findall(r"^FileDescriptorStoreMax=(\d+)$", text, re.M), re.findall(r"^Environment=FDSTORE=(\d+)$", text, re.M)
    assert most == told, f"{unit} keeps {most} and tells of {told}"
    return int(most)


class OneProcess(unittest.TestCase):
    """egret-memcached, whose items are in files: clients and items go on."""

    def test_clients_and_items_go_on(self):
        folder = tempfile.TemporaryDirectory(prefix="egret-restart-")
        self.addCleanup(folder.cleanup)
        items = tempfile.TemporaryDirectory(prefix="egret-restart-", dir="/dev/shm")
        self.addCleanup(items.cleanup)
        manager = Manager(folder.name, [], places_of("egret-memcached.service"))
        self.addCleanup(manager.close)
        host, port = manager.address
        as_root = ["-u", "root"] if os.geteuid() == 0 else []
        manager.command = [f"{BUILD}/egret-memcached", *as_root, "-l", host, "-p", str(port), "-t", "2", "-e", f"{items.name}/items", "-v"]
        manager.start()
        clients = [Client(manager.address) for _ in range(8)]
        for number, client in enumerate(clients):
            self.addCleanup(client.close)
            self.assertEqual(client.ask(b"set k%d 0 0 1\r\nx\r\n" % number), b"STORED\r\n")
        for _ in range(3):
            manager.restart()
            self.assertEqual(manager.store, [])  # it took them all
            for number, client in enumerate(clients):
                self.assertEqual(client.ask(b"get k%d\r\n" % number, b"END\r\n"), b"VALUE k%d 0 1\r\nx\r\nEND\r\n" % number)
        self.assertIn("8 clients are handed over", manager.said())
        self.assertIn("8 clients of the process before are taken over", manager.said())


class WithoutStore(Restart):
    def slow_answers(self, manager):
        """A client whose requests are under way when the proxy is told to stop."""
        halt(self.backend.process)
        client = self.client(manager)
        client.send(b"set k 0 0 1\r\nx\r\nget k\r\n")
        return client

    def test_what_is_under_way_is_answered_and_then_it_ends(self):
        manager = self.manager(0)
        client = self.slow_answers(manager)
        time.sleep(0.1)
        manager.process.send_signal(signal.SIGTERM)
        client.send(b"mn\r\n")  # it is still read
        time.sleep(0.1)
        os.kill(self.backend.process.pid, signal.SIGCONT)
        self.assertEqual(client.read(b"MN\r\n"), b"STORED\r\nVALUE k 0 1\r\nx\r\nEND\r\nMN\r\n")
        self.assertEqual(client.socket.recv(100), b"")
        self.assertEqual(manager.process.wait(WAIT_SECONDS), 0)

    def test_an_idle_client_is_told_at_once(self):
        manager = self.manager(0, "drain=1h")
        client = self.client(manager)
        self.assertEqual(client.ask(b"mn\r\n"), b"MN\r\n")
        self.assertEqual(manager.stop(), 0)
        self.assertEqual(client.socket.recv(100), b"")

    def test_what_is_sent_too_late_does_not_take_back_the_answers(self):
        """After the end of the answers has been sent, bytes of the client still come: no reset, before it has read."""
        manager = self.manager(0)
        client = self.client(manager)
        value = b"x" * 500_000
        self.assertEqual(client.ask(b"set k 0 0 500000\r\n" + value + b"\r\n"), b"STORED\r\n")
        client.send(b"get k\r\n" * 8)
        first = client.socket.recv(1)
        manager.process.send_signal(signal.SIGTERM)
        for _ in range(20):
            client.send(b"mn\r\n")
            time.sleep(0.005)
        answer = first
        while part := client.socket.recv(1 << 20):
            answer += part
        self.assertEqual(answer.count(b"END\r\n"), 8)
        self.assertEqual(manager.process.wait(WAIT_SECONDS), 0)

    def test_a_client_that_does_not_read_is_given_up_in_time(self):
        manager = self.manager(0, "drain=500ms")
        client = self.client(manager)
        self.assertEqual(client.ask(b"set k 0 0 900000\r\n" + b"x" * 900_000 + b"\r\n"), b"STORED\r\n")
        client.send(b"get k\r\n" * 64)
        time.sleep(0.1)
        self.assertEqual(manager.stop(), 0)

    def plain_proxy(self, *options):
        """One that listens itself, on two ports; the first of them."""
        with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as other:
            ports = [free.getsockname()[1] for free in (one, other)]
        sets = ["workers=1", f"backends={self.where}", "listen=" + ",".join(f"tcp:127.0.0.1:{port}" for port in ports), *options]
        proxy = Supervised(self.folder, [f"{BUILD}/egret-proxy", *(word for option in sets for word in ("--set", option))])
        self.addCleanup(proxy.close)
        proxy.notice("READY=1")
        return proxy, ports[0]

    def test_connections_for_which_there_is_no_room_do_not_hold_up_the_end(self):
        proxy, port = self.plain_proxy("max_connections=1", "maxconns_fast=false")
        served, waiting = (Client(("127.0.0.1", port)) for _ in range(2))
        self.addCleanup(served.close)
        self.addCleanup(waiting.close)
        self.assertEqual(served.ask(b"mn\r\n"), b"MN\r\n")
        proxy.process.terminate()
        self.assertEqual(proxy.process.wait(WAIT_SECONDS), 0)

    def test_connections_that_wait_to_be_accepted_are_served(self):
        proxy, port = self.plain_proxy()
        halt(proxy.process)
        clients = [Client(("127.0.0.1", port)) for _ in range(100)]
        for client in clients:
            self.addCleanup(client.close)
            client.send(b"mn\r\n")
        proxy.process.send_signal(signal.SIGTERM)
        os.kill(proxy.process.pid, signal.SIGCONT)
        for client in clients:
            self.assertEqual(client.read(b"\r\n"), b"MN\r\n")
            self.assertEqual(client.socket.recv(100), b"")


if __name__ == "__main__":
    unittest.main()
