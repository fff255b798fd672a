"""The subject of SUT=library: egret-backend, and a server that executes everything through libegret's C API (tests/client/front.cc)."""

import os

import servers

OPTIONS = dict(pair.split("=", 1) for pair in os.environ.get("EGRET_LIBRARY_OPTIONS", "").split())


class Library(servers.Egret):
    """Options of `proxy` are not for it; its own are those of docs/client/options.md."""

    def __init__(self, proxy=None, **egret_arguments):
        self.front = None
        super().__init__(proxies=0, **egret_arguments)
        for _ in range(3):
            self.addresses = [("127.0.0.1", servers.free_port())]
            options = {"backends": self.backend_address, **OPTIONS}
            argv = [servers.egret_binary("egret-client-front"), "%s:%d" % self.address, self._unix_path(0)]
            self.front = servers.Daemon(argv + [f"{name}={value}" for name, value in options.items()], self.directory, "front")
            if servers.wait_for(self._serves, "the library's server") == "ready":
                return
        raise AssertionError(f"the library's server does not start:\n{self.front.log()}\n{self.backend.log()}")

    def _serves(self):
        if not self.front.is_alive():
            return "dead"
        try:
            return servers.ask(self.address, self.READY) == b"END\r\n" and "ready"
        except OSError:
            return False

    def daemons(self):
        return [self.backend, self.front]

    def stop(self):
        if self.front is not None:
            self.front.stop()
        super().stop()
