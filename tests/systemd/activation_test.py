#!/usr/bin/env python3
"""activation_test.py BUILD: egret-proxy serves sockets that it inherits (socket activation), beside or instead of its own."""
import os, pathlib, socket, subprocess, sys, tempfile, threading, unittest

from daemons import WAIT_SECONDS, Supervised, stop

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(sys.argv.pop(1)).resolve()
RESTARTS = 10


def listening(family=socket.AF_INET, address=("127.0.0.1", 0)):
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.bind(address)
    listener.listen(256)
    return listener


def name_of(listener):
    return "tcp:%s:%d" % listener.getsockname()


def exchange(address, request, family=socket.AF_INET):
    with socket.socket(family, socket.SOCK_STREAM) as client:
        client.settimeout(WAIT_SECONDS)
        client.connect(address)
        client.sendall(request)
        return client.recv(65536)


class Activation(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="egret-activation-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        where = f"shm:{self.folder}/backend.sock"
        backend = Supervised(self.folder, [f"{BUILD}/egret-backend", "--set", f"listen={where}"])
        self.addCleanup(backend.close)
        backend.notice("READY=1")
        self.command = [f"{BUILD}/egret-proxy", "--set", f"backends={where}", "--set", "workers=2"]

    def activated(self, descriptors, *options, names=None):
        """A proxy that inherits them from descriptor 3 on, as systemd would have it; not waited for."""
        moves = " ".join(f"{10 + i}<&{fd}" for i, fd in enumerate(descriptors))
        places = " ".join(f"{3 + i}<&{10 + i} {10 + i}<&-" for i in range(len(descriptors)))
        script = f'exec {moves}; exec {places}; export LISTEN_PID=$$; exec "$@"'
        sets = [word for option in options for word in ("--set", option)]
        environment = {"LISTEN_FDS": str(len(descriptors))}
        if names:
            environment["LISTEN_FDNAMES"] = ":".join(names)
        proxy = Supervised(self.folder, ["bash", "-c", script, "bash", *self.command, *sets], environment,
                           pass_fds=descriptors, stderr=subprocess.PIPE)
        self.addCleanup(proxy.close)
        return proxy

    def ready(self, *arguments, **keywords):
        proxy = self.activated(*arguments, **keywords)
        notice = proxy.notice("READY=1")
        self.assertIsNotNone(notice, "the proxy did not start")
        proxy.listening = sorted(line.split("=", 1)[1] for line in notice.split("\n") if line.startswith("X_EGRET_LISTENING="))
        return proxy

    def said_by(self, proxy):
        stop(proxy.process)
        return proxy.process.stderr.read().decode()

    def test_an_inherited_socket_is_served_instead_of_the_default(self):
        with listening() as listener:
            proxy = self.ready([listener.fileno()])
            self.assertEqual(proxy.listening, [name_of(listener)])
            self.assertEqual(exchange(listener.getsockname(), b"get k\r\n"), b"END\r\n")
            self.assertIn(f"listening on {name_of(listener)} (inherited)", self.said_by(proxy))

    def test_an_inherited_socket_takes_the_place_of_its_entry(self):
        with listening() as listener:
            proxy = self.ready([listener.fileno()], f"listen={name_of(listener)}")
            self.assertEqual(proxy.listening, [name_of(listener)])

    def test_what_no_entry_names_is_served_beside_the_entries(self):
        with listening() as listener:
            proxy = self.ready([listener.fileno()], "listen=tcp:127.0.0.1:0")
            self.assertEqual(len(proxy.listening), 2)
            for address in proxy.listening:
                host, port = address.removeprefix("tcp:").rsplit(":", 1)
                self.assertEqual(exchange((host, int(port)), b"mn\r\n"), b"MN\r\n")

    def test_a_unix_socket_keeps_its_path_and_mode(self):
        path = f"{self.folder}/clients.sock"
        with listening(socket.AF_UNIX, path) as listener:
            os.chmod(path, 0o751)
            proxy = self.ready([listener.fileno()], f"listen=unix:{path}", "unix_mode=0700")
            self.assertEqual(exchange(path, b"mn\r\n", socket.AF_UNIX), b"MN\r\n")
            stop(proxy.process)
            self.assertEqual(os.stat(path).st_mode & 0o777, 0o751)

    def test_a_socket_called_tls_needs_a_certificate(self):
        with listening() as listener:
            proxy = self.activated([listener.fileno()], names=["tls"])
            self.assertEqual(proxy.process.wait(WAIT_SECONDS), 1)
            self.assertIn("tls_certificate: a tls: address", proxy.process.stderr.read().decode())

    def test_a_socket_called_tls_speaks_it(self):
        pem = f"{self.folder}/proxy.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1",
                        "-subj", "/CN=localhost", "-keyout", pem, "-out", f"{pem}.crt"], check=True, capture_output=True)
        with open(pem, "ab") as whole:
            whole.write(pathlib.Path(f"{pem}.crt").read_bytes())
        import ssl
        with listening() as secure, listening() as plain:
            self.ready([secure.fileno(), plain.fileno()], f"tls_certificate={pem}", names=["tls", "clients"])
            trust_all = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            trust_all.check_hostname, trust_all.verify_mode = False, ssl.CERT_NONE
            with socket.create_connection(secure.getsockname(), WAIT_SECONDS) as raw, trust_all.wrap_socket(raw) as client:
                client.sendall(b"mn\r\n")
                self.assertEqual(client.recv(64), b"MN\r\n")
            self.assertEqual(exchange(plain.getsockname(), b"mn\r\n"), b"MN\r\n")

    def test_garbage_is_refused_by_name(self):
        def refusal(descriptor, count=None):
            proxy = self.activated([descriptor], names=["odd"])
            self.assertEqual(proxy.process.wait(WAIT_SECONDS), 1)
            said = proxy.process.stderr.read().decode()
            self.assertEqual(said.count("\n"), 1, said)
            return said
        with open("/dev/null") as null:
            self.assertIn("descriptor 3 (odd), which was passed to listen on, is no socket", refusal(null.fileno()))
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
            self.assertIn("is no stream socket", refusal(datagrams.fileno()))
        with socket.socket() as unbound:
            self.assertIn("does not listen", refusal(unbound.fileno()))

    def test_a_descriptor_that_is_not_there_is_refused(self):
        proxy = Supervised(self.folder, ["bash", "-c", 'LISTEN_PID=$$ LISTEN_FDS=2 exec "$@" 3<&- 4<&-', "bash", *self.command],
                           stderr=subprocess.PIPE)
        self.addCleanup(proxy.close)
        self.assertEqual(proxy.process.wait(WAIT_SECONDS), 1)
        self.assertIn("LISTEN_FDS: descriptor 3: Bad file descriptor", proxy.process.stderr.read().decode())

    def test_no_connection_is_refused_over_restarts(self):
        with listening() as listener:
            over = threading.Event()
            refused, answered = [], []

            def connect_again_and_again():
                while not over.is_set():
                    try:
                        answer = exchange(listener.getsockname(), b"mn\r\n")
                        if answer == b"MN\r\n":
                            answered.append(answer)
                    except ConnectionResetError:
                        pass  # its proxy ended before it spoke: systemd keeps such connections, this harness does not
                    except OSError as error:
                        refused.append(error)

            clients = [threading.Thread(target=connect_again_and_again) for _ in range(4)]
            for client in clients:
                client.start()
            try:
                for _ in range(RESTARTS):
                    before = len(answered)
                    proxy = self.ready([listener.fileno()])
                    while len(answered) < before + 50 and not refused:
                        over.wait(0.01)
                    stop(proxy.process)
                proxy = self.ready([listener.fileno()])  # for those that wait
            finally:
                over.set()
                for client in clients:
                    client.join()
            self.assertEqual(refused, [])
            self.assertGreater(len(answered), 50 * RESTARTS)

    def test_systemd_itself_may_be_who_passes_them(self):
        with listening() as free:
            port = free.getsockname()[1]
        notify = Supervised(self.folder, ["systemd-socket-activate", "-E", "NOTIFY_SOCKET", "-l", f"127.0.0.1:{port}", "--fdname=clients",
                                          *self.command], stderr=subprocess.PIPE)
        self.addCleanup(notify.close)
        # It starts the proxy for the first client, who waits.
        for _ in range(WAIT_SECONDS * 100):
            try:
                answer = exchange(("127.0.0.1", port), b"get k\r\n")
                break
            except ConnectionRefusedError:
                threading.Event().wait(0.01)
        self.assertEqual(answer, b"END\r\n")
        self.assertEqual([line for line in notify.notice("READY=1").split("\n") if "LISTENING" in line],
                         [f"X_EGRET_LISTENING=tcp:127.0.0.1:{port}"])


if __name__ == "__main__":
    unittest.main()
