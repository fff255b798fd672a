"""A daemon that a test reconfigures while it runs, as an operator does: it changes the file and sends SIGHUP."""

import re
import signal

from servers import Daemon, egret_binary, wait_for


class Configured:
    """A daemon whose options are all in one file."""

    def __init__(self, directory, name, options):
        self.directory, self.name = directory, name
        self.path = directory / f"{name}.yaml"
        self.options = dict(options)
        self.restart()

    def write(self):
        quoted = (f"{key}: {value if str(value).startswith('[') else repr(str(value))}" for key, value in self.options.items())
        whole = self.path.with_suffix(".new")  # nobody is to read half of it
        whole.write_text("".join(line + "\n" for line in quoted))
        whole.rename(self.path)

    def restart(self):
        self.write()
        self.daemon = Daemon([egret_binary(self.name), "--config", self.path], self.directory, self.name)

    def log(self):
        return self.daemon.log(1_000_000)

    def hup(self, **changes):
        """Changes the file, sends SIGHUP, and returns what was logged until it was read."""
        self.options.update(changes)
        self.write()
        before = len(self.log())
        self.daemon.signal(signal.SIGHUP)
        is_read = lambda: re.search(r"reloaded: |reload refused", self.log()[before:])
        wait_for(is_read, f"{self.name} to reload {changes}")
        return self.log()[before:]

    def changed(self, **changes):
        """hup(), and it must have been applied."""
        said = self.hup(**changes)
        assert re.search(rf"reloaded: changed: {', '.join(changes)}( |$)", said, re.M) and "restart" not in said, said
