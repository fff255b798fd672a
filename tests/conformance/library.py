"""The subjects of SUT=library: a server that executes everything through libegret's C API (tests/client/front.cc), before egret-backend,
or before egret-memcached as one process (EGRET_ONE_PROCESS=1)."""

import os

import servers

OPTIONS = dict(pair.split("=", 1) for pair in os.environ.get("EGRET_LIBRARY_OPTIONS", "").split())
READY = b"get egret-ready\r\n"


class Front:
    """That server. `options`: docs/client/options.md."""

    def __init__(self, directory, path, options):
        for _ in range(3):
            self.address = ("127.0.0.1", servers.free_port())
            argv = [servers.egret_binary("egret-client-front"), "%s:%d" % self.address, path]
            self.daemon = servers.Daemon(argv + [f"{name}={value}" for name, value in {**options, **OPTIONS}.items()], directory, "front")
            if servers.wait_for(self._serves, "the library's server") == "ready":
                return
        raise AssertionError(f"the library's server does not start:\n{self.daemon.log()}")

    def _serves(self):
        if not self.daemon.is_alive():
            return "dead"
        try:
            return servers.ask(self.address, READY) == b"END\r\n" and "ready"
        except OSError:
            return False


class Library(servers.Egret):
    """Options of `proxy` are not for it."""

    def __init__(self, proxy=None, **egret_arguments):
        self.front = None
        super().__init__(proxies=0, **egret_arguments)
        self.front = Front(self.directory, self._unix_path(0), {"backends": self.backend_address})
        self.addresses = [self.front.address]

    def daemons(self):
        return [self.backend, self.front.daemon]

    def stop(self):
        if self.front is not None:
            self.front.daemon.stop()
        super().stop()


class LibraryOfOneProcess(servers.OneProcess):
    """By the slots of the process's workers, who listen for them beside its address."""

    def __init__(self):
        super().__init__()
        self.front_path = self.directory / "front.sock"
        self.front = Front(self.directory, self.front_path, {"proxy": "tcp:%s:%d" % self.address})
        self.address = self.front.address

    def unix_address(self):
        return str(self.front_path)

    def daemons(self):
        return [self.daemon, self.front.daemon]

    def stop(self):
        self.front.daemon.stop()
        super().stop()
