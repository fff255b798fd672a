#!/usr/bin/env python3
"""make_run_test.py: `make run` serves, says so, and ends cleanly however it is ended; nothing of it stays behind.

Through the public face alone: make, a loopback port, signals, process ids of what it started itself.
"""
import os, pathlib, re, signal, socket, subprocess, tempfile, time, unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
READY_SECONDS = 120  # make run may have to build what was just edited
END_SECONDS = 20


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Run:
    """One `make run`, in a session of its own, its output in a file, its temporary files in a folder that should end empty."""

    def __init__(self, listen=None):
        self.folder = tempfile.TemporaryDirectory(prefix="egret-make-run-")
        self.port = free_port()
        self.log = pathlib.Path(self.folder.name, "log")
        self.runtime = pathlib.Path(self.folder.name, "tmp")
        self.runtime.mkdir()
        environment = {key: value for key, value in os.environ.items() if not key.startswith("MAKE")}
        with self.log.open("wb") as log:
            self.make = subprocess.Popen(
                ["make", "--no-print-directory", "run", f"LISTEN={listen or f'127.0.0.1:{self.port}'}"], cwd=ROOT,
                env=environment | {"TMPDIR": str(self.runtime)}, stdin=subprocess.DEVNULL, stdout=log,
                stderr=subprocess.STDOUT, start_new_session=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.make.poll() is None:
            self.make.terminate()
            self.make.wait(END_SECONDS)
        self.folder.cleanup()

    def text(self):
        return self.log.read_text(errors="replace")

    def wait_ready(self):
        end = time.monotonic() + READY_SECONDS
        while "Ctrl-C stops it" not in self.text():
            if self.make.poll() is not None or time.monotonic() > end:
                raise AssertionError(f"not ready (status {self.make.poll()}):\n{self.text()[-4000:]}")
            time.sleep(0.05)

    def ask(self, request):
        with socket.create_connection(("127.0.0.1", self.port), 5) as connection:
            connection.sendall(request + b"quit\r\n")
            return b"".join(iter(lambda: connection.recv(4096), b""))

    def daemons(self):
        """{name: pid} of the daemons whose command line names this run's folder."""
        found = {}
        for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            try:
                words = path.read_bytes().split(b"\0")
            except OSError:
                continue
            name = os.path.basename(words[0]).decode(errors="replace")
            if name in ("egret-backend", "egret-proxy") and any(os.fsencode(self.runtime) in word for word in words):
                found[name] = int(path.parent.name)
        return found

    def assert_gone(self, test):
        end = time.monotonic() + END_SECONDS
        while (self.daemons() or list(self.runtime.iterdir())) and time.monotonic() < end:
            time.sleep(0.05)
        test.assertEqual(self.daemons(), {})
        test.assertEqual(list(self.runtime.iterdir()), [])


class MakeRun(unittest.TestCase):
    def test_it_serves_what_its_banner_says(self):
        with Run() as run:
            run.wait_ready()
            self.assertIn(f"127.0.0.1:{run.port}", run.text())
            example = re.search(r"exec 3<>.*", run.text()).group(0)
            answer = subprocess.run(["bash", "-c", example], capture_output=True, timeout=END_SECONDS, check=True).stdout
            self.assertIn(b"STORED\r\n", answer)
            self.assertIn(b"\r\nhello\r\nEND\r\n", answer)
            self.assertIn(b"STAT cmd_set 1\r\n", answer)

    def ends_by(self, act):
        with Run() as run:
            run.wait_ready()
            act(run)
            run.make.wait(END_SECONDS)
            run.assert_gone(self)
            self.assertNotIn("rror 1", run.text())

    def test_ctrl_c_ends_it(self):
        self.ends_by(lambda run: os.killpg(run.make.pid, signal.SIGINT))

    def test_sigterm_to_make_ends_it(self):
        self.ends_by(lambda run: run.make.send_signal(signal.SIGTERM))

    def test_sigint_to_make_alone_ends_it(self):
        self.ends_by(lambda run: run.make.send_signal(signal.SIGINT))

    def test_nothing_outlives_a_killed_make(self):
        self.ends_by(lambda run: run.make.kill())

    def test_it_ends_when_a_daemon_dies_and_says_which(self):
        for name in ("egret-backend", "egret-proxy"):
            with self.subTest(name), Run() as run:
                run.wait_ready()
                os.kill(run.daemons()[name], signal.SIGKILL)
                self.assertNotEqual(run.make.wait(END_SECONDS), 0)
                self.assertIn(f"egret: {name} ended\n", run.text())
                run.assert_gone(self)

    def test_a_taken_address_is_one_clear_line(self):
        with socket.socket() as holder:
            holder.bind(("127.0.0.1", 0))
            holder.listen()
            listen = f"127.0.0.1:{holder.getsockname()[1]}"
            with Run(listen) as run:
                self.assertNotEqual(run.make.wait(READY_SECONDS), 0)
                lines = [line for line in run.text().splitlines() if not line.startswith("make: ***")]
                self.assertEqual(len(lines), 1, run.text())
                self.assertIn(f"{listen} is taken", lines[0])

    def test_an_address_without_a_port_is_one_clear_line(self):
        with Run("nonsense") as run:
            self.assertNotEqual(run.make.wait(READY_SECONDS), 0)
            self.assertIn('egret: LISTEN: expected HOST:PORT, got "nonsense"\n', run.text())


if __name__ == "__main__":
    unittest.main(verbosity=2)
