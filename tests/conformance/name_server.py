"""A real name server, Debian's dnsmasq, on a port of loopback that the system chose, over UDP and TCP.

What it answers is set by answer(); names below pool.test that were not set do not exist. fail() makes it answer SERVFAIL to
everything, be_silent() nothing at all. Times to live are 0: a proxy asks again after the least time that it waits.
"""

import signal
import socket
import struct
import threading

from servers import Daemon, wait_for

ZONE = "pool.test"


class FailingServer(threading.Thread):
    """Answers SERVFAIL to every question over UDP."""

    def __init__(self):
        super().__init__(daemon=True)
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.start()

    def run(self):
        while True:
            question, peer = self.socket.recvfrom(4096)
            if not question:
                return
            self.socket.sendto(question[:2] + b"\x81\x82" + question[4:], peer)

    def stop(self):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as last:
            last.sendto(b"", ("127.0.0.1", self.port))
        self.join()
        self.socket.close()


class NameServer:
    def __init__(self, directory):
        self.directory = directory
        self.hosts = directory / "hosts"
        self.configuration = directory / "dnsmasq.conf"
        self.failing = FailingServer()
        self.port = None
        self.daemon = None
        self.hosts.write_text("")
        self._restart("")

    @property
    def address(self):
        """As the proxy's option dns_servers has it."""
        return f"127.0.0.1:{self.port}"

    def answer(self, addresses=None, services=None):
        """`addresses`: host → its addresses. `services`: name → (host, port) of its SRV records. It re-reads the former at SIGHUP,
        the latter when it starts only."""
        new = self.hosts.with_suffix(".new")
        new.write_text("".join(f"{address} {host}.{ZONE}\n" for host, all_of_it in (addresses or {}).items() for address in all_of_it))
        new.rename(self.hosts)
        records = f"local=/{ZONE}/\n" + "".join(
            f"srv-host={name}.{ZONE},{host}.{ZONE},{port}\n" for name, targets in (services or {}).items() for host, port in targets)
        if records == self.records and self.daemon.is_alive():
            self.daemon.signal(signal.SIGHUP)
        else:
            self._restart(records)

    def fail(self):
        self._restart(f"server=/{ZONE}/127.0.0.1#{self.failing.port}\n")

    def be_silent(self):
        self.daemon.halt()

    def go_on(self):
        self.daemon.signal(signal.SIGCONT)

    def truncates_over_udp(self, name):
        """Whether its SRV records are too many for an answer of 1,232 bytes."""
        labels = f"{name}.{ZONE}".encode().split(b".")
        question = b"".join(bytes([len(label)]) + label for label in labels) + b"\0" + struct.pack(">HH", 33, 1)
        extension = b"\0" + struct.pack(">HHIH", 41, 1232, 0, 0)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.settimeout(10)
            sock.sendto(b"id" + struct.pack(">HHHHH", 0x100, 1, 0, 0, 1) + question + extension, ("127.0.0.1", self.port))
            return bool(sock.recv(65536)[2] & 2)

    def log(self):
        return self.daemon.log(1_000_000)

    def stop(self):
        if self.daemon.is_alive():
            self.go_on()
        self.daemon.stop()
        self.failing.stop()

    def _restart(self, records):
        if self.daemon:
            self.daemon.stop()
        self.records = records
        self.configuration.write_text(
            "no-resolv\nno-hosts\nbind-interfaces\nlisten-address=127.0.0.1\nlocal-ttl=0\nlog-queries=extra\n"
            f"addn-hosts={self.hosts}\n{records}")
        for _ in range(20):
            port = self.port or self._free_port()
            # -d: in the foreground, as the user that we are, without a file of its process id.
            self.daemon = Daemon(["dnsmasq", "-d", f"--port={port}", f"--conf-file={self.configuration}"], self.directory, "dnsmasq")
            started = wait_for(lambda: not self.daemon.is_alive() or ("started, version" in self.log() and "read " in self.log()),
                               "dnsmasq to start")
            if started and self.daemon.is_alive():
                self.port = port
                return
        raise AssertionError(f"dnsmasq does not start; its log:\n{self.log()}")

    @staticmethod
    def _free_port():
        """Free for TCP and, mostly, for UDP: else dnsmasq ends and another is tried."""
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            return probe.getsockname()[1]
