"""The real daemons, each with an admin address, and a load on them."""
import os, pathlib, re, signal, socket, subprocess, time

BUILD = pathlib.Path(os.environ["EGRET_BUILD"])
PATIENCE_S = 60


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Daemon:
    """egret-proxy or egret-backend on a fixed admin port, so that it can be killed and started again."""

    def __init__(self, folder, program, *settings):
        self.log_path = pathlib.Path(folder) / f"{program}.log"
        self.admin = f"127.0.0.1:{free_port()}"
        self.command = [str(BUILD / program)]
        for setting in (f"admin={self.admin}", *settings):
            self.command += ["--set", setting]
        self.start()

    def start(self):
        with open(self.log_path, "w") as log:
            self.process = subprocess.Popen(self.command, stdout=log, stderr=subprocess.STDOUT)
        end = time.monotonic() + PATIENCE_S
        while not self.answers():
            assert self.process.poll() is None and time.monotonic() < end, self.log_path.read_text()
            time.sleep(0.1)

    def answers(self):
        try:
            socket.create_connection(self.admin.split(":"), 1).close()
            return True
        except OSError:
            return False

    def kill(self, number=signal.SIGKILL):
        self.process.send_signal(number)
        if number in (signal.SIGKILL, signal.SIGTERM):
            self.process.wait(PATIENCE_S)

    def close(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.kill()


class System:
    """One backend, one proxy, and 2000 requests a second on them."""

    def __init__(self, folder):
        self.running = []
        try:
            address = f"shm:{folder}/backend.sock"
            self.backend = self.add(Daemon(folder, "egret-backend", f"listen={address}", "memory=64MiB"))
            port = free_port()
            self.proxy = self.add(Daemon(folder, "egret-proxy", f"listen=tcp:127.0.0.1:{port}", f"backends={address} name=cache-a", "workers=1"))
            self.load = subprocess.Popen([BUILD / "egret-bench", "--connect", f"127.0.0.1:{port}", "-c", "20", "-d", "4", "--keys", "20000", "--read-share", "0.9", "--rate", "2000", "--warmup", "0", "-t", "3600"],
                                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        except BaseException:
            self.close()
            raise

    def add(self, daemon):
        self.running.append(daemon)
        return daemon

    def mend(self):
        """What a test that failed has left dead or stopped."""
        for daemon in self.running:
            if daemon.process.poll() is None:
                daemon.kill(signal.SIGCONT)
            else:
                daemon.start()

    def close(self):
        if hasattr(self, "load"):
            self.load.kill()
            self.load.wait()
        for daemon in self.running:
            daemon.close()
