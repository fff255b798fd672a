"""A program under a pseudo-terminal, and what its screen shows (pyte draws it)."""
import fcntl, os, pty, select, signal, struct, termios, time

import pyte

PATIENCE_S = 30


class Terminal:
    def __init__(self, command, columns=140, lines=40, **env):
        self.screen = pyte.Screen(columns, lines)
        self.stream = pyte.ByteStream(self.screen)
        self.raw = b""
        self.master, slave = pty.openpty()
        self.resize(columns, lines)
        self.before = termios.tcgetattr(slave)
        self.pid = os.fork()
        if self.pid == 0:
            os.setsid()
            fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
            for descriptor in range(3):
                os.dup2(slave, descriptor)
            os.close(self.master)
            os.execvpe(command[0], command, os.environ | {"TERM": "xterm-256color", "LC_ALL": "C.UTF-8"} | env)
        self.slave = slave  # kept: the settings outlive the program
        self.status = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.status is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        for descriptor in (self.slave, self.master):
            try:
                os.close(descriptor)
            except OSError:
                pass

    def resize(self, columns, lines):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self.screen.resize(lines, columns)

    def press(self, keys):
        os.write(self.master, keys.encode())

    def take(self, seconds=0.05):
        """What has been written meanwhile."""
        while select.select([self.master], [], [], seconds)[0]:
            data = os.read(self.master, 65536)
            self.raw += data
            self.stream.feed(data)
            seconds = 0.02  # a picture comes in pieces

    @property
    def lines(self):
        return [line.rstrip() for line in self.screen.display]

    @property
    def text(self):
        return "\n".join(self.lines)

    def wait_for(self, condition):
        """Until the screen is so: a text that it has, or a function of this."""
        found = (lambda: condition in self.text) if isinstance(condition, str) else lambda: condition(self)
        end = time.monotonic() + PATIENCE_S
        while not found():
            assert time.monotonic() < end, f"the screen never was so: {condition}\n{self.text}"
            self.take()
        return self

    def wait_for_end(self):
        """The status of waitpid()."""
        end = time.monotonic() + PATIENCE_S
        while self.status is None:
            assert time.monotonic() < end, "it goes on"
            self.take()
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = status
        self.take()
        return self.status

    def is_as_before(self):
        """Line discipline, screen and cursor are as whoever started it left them."""
        settings = termios.tcgetattr(self.slave)
        left = self.raw.rfind(b"\x1b[?1049l")
        return settings == self.before and left > self.raw.rfind(b"\x1b[?1049h") and self.raw.rfind(b"\x1b[?25l") < max(self.raw.rfind(b"\x1b[?25h"), self.raw.rfind(b"\x1b[34h\x1b[?25h"))
