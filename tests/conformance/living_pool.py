"""Pools whose members change all the while: their proxies read a file of members that a thread replaces."""

import re
import signal
import threading

import servers
from servers import EgretPool, wait_for


class FilePool(EgretPool):
    """Each of its proxies has the members of one file, and no others."""

    @property
    def path(self):
        return self.directory / "members"

    def line(self, number):
        return f"{self.address_of_backend(number)} weight={self.weights[number]} name={self.names[number]}\n"

    def write(self, members):
        new = self.path.with_suffix(".new")
        new.write_text("".join(self.line(number) for number in members))
        new.rename(self.path)

    def proxy_argv(self, index):
        if index in self.alone:
            return super().proxy_argv(index)
        options = {"listen": self.listen_of_proxy(index), "backends_file": self.path, "backends_most_removed": 100,
                   "backends_file_copy": self.directory / f"members.good{index}", **self.proxy_options}
        argv = [servers.egret_binary("egret-proxy")]
        return argv + [word for key, value in options.items() if value is not None for word in ("--set", f"{key}={value}")]

    def changes(self, index=0):
        """How many times a member has come."""
        return len(re.findall(r"\[member_joined\]", self.proxies[index].log(1 << 26)))


class LivingPool(FilePool):
    """Some members that have all keys, and two of so little weight that they have none, of which one is in the pool, in turn. So where
    keys are stays as it is: what is asked of this pool has the answers of one whose members do not change."""

    PAUSE = 0.15  # seconds between changes

    def __init__(self, names, **arguments):
        self.serving = len(names)
        super().__init__(list(names) + ["idle0", "idle1"], weights=[1000] * len(names) + [1, 1], start=False)
        self.stopping = threading.Event()
        self.turn = 0
        self._next()
        self.start_backend()
        for _ in range(arguments.get("proxies", 1)):
            self.add_proxy()
        self.thread = threading.Thread(target=self._work, daemon=True)
        self.thread.start()

    def _next(self):
        self.turn += 1
        self.write(list(range(self.serving)) + [self.serving + self.turn % 2])

    def _work(self):
        while not self.stopping.wait(self.PAUSE):
            self._next()
            for proxy in self.proxies:
                if proxy and proxy.is_alive():
                    proxy.signal(signal.SIGHUP)  # which reads the file at once

    def check_changes(self):
        """Members have changed meanwhile."""
        wait_for(lambda: self.changes() >= 3, "changes of members")
        assert not re.search(r"reload refused|members_unknown", self.proxies[0].log(1 << 26))

    def stop(self):
        self.stopping.set()
        self.thread.join()
        super().stop()
