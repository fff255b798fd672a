"""Both daemons of a build, on a shm socket and a loopback port of their own; what they say to NOTIFY_SOCKET can be read."""
import os, pathlib, socket, subprocess, tempfile, time

WAIT_SECONDS = 60  # bounds a hang


def stop(process):
    process.terminate()
    try:
        process.wait(WAIT_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


class Supervised:
    """A daemon, and the datagrams it sends to whoever started it."""

    def __init__(self, folder, command, environment=None, **of_popen):
        self.name = os.path.join(folder, f"notify-{len(os.listdir(folder))}")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.name)
        self.process = subprocess.Popen(
            command, env=os.environ | {"NOTIFY_SOCKET": self.name} | (environment or {}), stdin=subprocess.DEVNULL, **of_popen)

    def notice(self, beginning, seconds=WAIT_SECONDS):
        """The next datagram with such a line; None when none came."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self.socket.settimeout(left)
            try:
                text = self.socket.recv(65536).decode()
            except TimeoutError:
                return None
            if any(line.startswith(beginning) for line in text.split("\n")):
                return text
        return None

    def close(self):
        stop(self.process)
        self.socket.close()
        if self.process.stderr:
            self.process.stderr.close()


class Daemons:
    """`prefix` goes before each command line, as strace would; `environment` is for both."""

    def __init__(self, build, prefix=lambda name: [], environment=None, backend_options=(), proxy_options=()):
        self.folder = tempfile.TemporaryDirectory(prefix="egret-systemd-")
        self.started = []
        conf = pathlib.Path(__file__).resolve().parents[2] / "conf"
        where = f"shm:{self.folder.name}/backend.sock"

        def start(name, *options):
            sets = [word for option in options for word in ("--set", option)]
            command = [*prefix(name), f"{build}/{name}", "--config", str(conf / f"{name}.yaml"), *sets]
            self.started.append(Supervised(self.folder.name, command, environment))
            return self.started[-1]

        self.backend = start("egret-backend", f"listen={where}", *backend_options)
        self.backend_ready = self.backend.notice("READY=1")
        self.proxy = start("egret-proxy", "listen=tcp:127.0.0.1:0", f"backends={where}", *proxy_options)
        self.proxy_ready = self.proxy.notice("READY=1")

    def address(self):
        line = next(line for line in self.proxy_ready.split("\n") if line.startswith("X_EGRET_LISTENING=tcp:"))
        host, port = line.split(":", 1)[1].rsplit(":", 1)
        return host, int(port)

    def ask(self, request, answer_end):
        with socket.create_connection(self.address(), WAIT_SECONDS) as client:
            client.sendall(request)
            answer = b""
            while not answer.endswith(answer_end):
                part = client.recv(65536)
                if not part:
                    break
                answer += part
            return answer

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for daemon in reversed(self.started):
            daemon.close()
        self.folder.cleanup()
