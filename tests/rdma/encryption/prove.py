"""prove.py BUILD DOCS: Egret between two hosts whose kernels encrypt what they send each other, by the scripts of DOCS
(docs/operate). The backend and a client of the proxy on guest 1, the proxy on guest 0; sessions over rdma (rxe),
clients over TCP. Both exit 0, or something was wrong.

Each guest looks at every packet that leaves it. First without encryption: what the test stores is seen there, so the look
finds it. Then with xfrm, then with MACsec: nothing of it is seen, no packet is in clear, and the kernel has counted those
that it encrypted and decrypted. In the end one host has other keys: nothing is served, and nothing is in clear either."""

import os
import pathlib
import re
import socket
import subprocess
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "conformance"))
os.environ.setdefault("EGRET_SLACK", "8")
import servers

BUILD = pathlib.Path(sys.argv[1])
DOCS = pathlib.Path(sys.argv[2])
SHARE = pathlib.Path("/share")
ID = int(os.environ["EGRET_GUEST_ID"])
STEP_SECONDS = 60
HOSTS = ["10.9.0.1", "10.9.0.2"]
MACSEC_HOSTS = ["10.10.0.1", "10.10.0.2"]
MARK = b"a value that must not be seen on the wire"
IPV4, ARP, IPV6, MACSEC = 0x0800, 0x0806, 0x86DD, 0x88E5
ESP, IGMP, ICMPV6 = 50, 2, 58
OUTGOING = 4
# What AES-GCM is made of, with the random numbers that its first initialisation vector takes. Elsewhere the kernel loads
# them itself when they are asked for; a guest has no folder of modules that it knows of.
GCM = ["gcm", "ctr", "ghash-generic", "seqiv", "sha512_generic", "drbg"]


def run(*command):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, f"{command}: status {done.returncode}: {done.stdout}"
    return done.stdout


def say(word):
    print(word, flush=True)
    (SHARE / f"{word}.{ID}").touch()


def meet(word):
    """Both guests are here."""
    say(word)
    servers.wait_for((SHARE / f"{word}.{1 - ID}").exists, f"the other guest at {word}", STEP_SECONDS)


def device():
    return next(name for name in os.listdir("/sys/class/net") if name.startswith("e"))


class Wire:
    """Every packet that this host sends by its wire, from here on."""

    def __init__(self):
        self.sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        self.sock.bind((device(), 0))
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 << 20)
        self.sock.settimeout(0.1)
        self.marks = 0
        self.kinds = {}
        self.stopping = False
        self.thread = threading.Thread(target=self._work)
        self.thread.start()

    def _work(self):
        while not self.stopping:
            try:
                packet, address = self.sock.recvfrom(65536)
            except TimeoutError:
                continue
            if address[2] == OUTGOING:
                self.marks += MARK in packet
                kind = self.kind(packet)
                self.kinds[kind] = self.kinds.get(kind, 0) + 1

    @staticmethod
    def kind(packet):
        ethertype = int.from_bytes(packet[12:14], "big")
        if ethertype == IPV4:
            return {ESP: "esp", IGMP: "housekeeping"}.get(packet[23], "clear")
        if ethertype == IPV6:
            return "housekeeping" if packet[20] in (0, ICMPV6) else "clear"
        return {MACSEC: "macsec", ARP: "housekeeping"}.get(ethertype, "clear")

    def stop(self):
        self.stopping = True
        self.thread.join()
        self.sock.close()
        print(f"sent: {self.kinds}, of these with the value in clear: {self.marks}", flush=True)


def serve(hosts):
    """Starts this host's daemon; sessions go from guest 0 to guest 1."""
    if ID == 1:
        argv = [BUILD / "egret-backend", "--set", f"listen=rdma:{hosts[1]}:11311", "--set", "partitions=1", "--set", "memory=64MiB",
                "--set", "admin="]
    else:
        argv = [BUILD / "egret-proxy", "--set", f"backends=rdma:{hosts[1]}:11311", "--set", f"listen=tcp:{hosts[0]}:11211", "--set", "workers=1",
                "--set", "admin="]
    return subprocess.Popen([str(word) for word in argv], stderr=open(SHARE / f"daemon.{ID}.log", "a"))


def ask_through(hosts):
    """Sets and gets values that hold MARK; errors are asked again, wrong answers are not."""
    def is_served(size):
        value = (MARK * (size // len(MARK) + 1))[:size]
        try:
            stored = servers.ask((hosts[0], 11211), b"set mark%d 0 0 %d\r\n%s\r\n" % (size, size, value), timeout=5)
            got = servers.ask((hosts[0], 11211), b"get mark%d\r\n" % size, end=b"END\r\n", timeout=5)
        except OSError:
            return False
        if stored != b"STORED\r\n" or got.startswith(b"SERVER_ERROR"):
            return False
        assert got == b"VALUE mark%d 0 %d\r\n%s\r\nEND\r\n" % (size, size, value), got[:100]
        return True

    for size in (100, 3000, 100_000):
        servers.wait_for(lambda: is_served(size), f"a value of {size} bytes", STEP_SECONDS, step=0.1)


def stage(name, hosts, expected):
    """Egret serves at these addresses; what this host sends meanwhile is of the `expected` kind."""
    meet(f"{name}-ready")
    wire = Wire()
    daemon = serve(hosts)
    if ID == 1:
        ask_through(hosts)
    meet(f"{name}-asked")
    daemon.terminate()
    assert daemon.wait(60) == 0, f"the daemon did not end well: {(SHARE / f'daemon.{ID}.log').read_text()}"
    meet(f"{name}-over")
    wire.stop()
    assert wire.kinds.get(expected, 0) > 50, f"{name}: hardly anything was sent: {wire.kinds}"
    if expected == "clear":
        assert wire.marks > 0, f"{name}: the look at the wire does not find what is there in clear"
    else:
        assert wire.marks == 0 and "clear" not in wire.kinds, f"{name}: {wire.kinds}, {wire.marks} with the value in clear"


def load(*modules):
    kernel = pathlib.Path(os.environ["EGRET_GUEST_KERNEL"])
    for module in modules:
        run("modprobe", "-d", kernel, module)


# --- xfrm


def xfrm(action, keys="xfrm.keys"):
    run(DOCS / "xfrm.sh", action, *HOSTS, SHARE / keys)


def check_xfrm_counters():
    """Of both directions: packets that were encrypted or decrypted; and none that was refused."""
    text = run("ip", "-s", "xfrm", "state")
    packets = [int(count) for count in re.findall(r"(\d+)\(packets\)", text)]
    assert len(packets) == 2 and min(packets) > 20, text
    assert not [count for count in re.findall(r"failed (\d+)", text) if count != "0"], text
    print(f"xfrm counts {packets} packets", flush=True)


def prove_xfrm():
    load("xfrm_user", "esp4", *GCM)
    if ID == 0:
        for name in ("xfrm.keys", "other.keys"):
            (SHARE / name).write_text("".join(os.urandom(36).hex() + "\n" for _ in range(2)))
    meet("keys")
    xfrm("on")
    stage("xfrm", HOSTS, "esp")
    check_xfrm_counters()
    xfrm("off")


def refuse_other_keys():
    """One host holds other keys: neither is served, nor does anything go out in clear."""
    xfrm("on", "xfrm.keys" if ID == 0 else "other.keys")
    meet("other-ready")
    wire = Wire()
    daemon = serve(HOSTS)
    if ID == 1:
        try:
            answer = servers.ask((HOSTS[0], 11211), b"version\r\n", timeout=0.5)
            raise AssertionError(f"answered across different keys: {answer}")
        except OSError:
            pass
    meet("other-asked")
    daemon.terminate()
    daemon.wait(60)
    wire.stop()
    assert wire.marks == 0 and "clear" not in wire.kinds, wire.kinds
    refused = int(re.search(r"XfrmInStateProtoError\s+(\d+)", pathlib.Path("/proc/net/xfrm_stat").read_text())[1])
    assert ID == 1 or refused > 0, "nothing came that was refused"
    xfrm("off", "xfrm.keys" if ID == 0 else "other.keys")
    meet("other-over")


# --- MACsec


def prove_macsec():
    load("macsec", *GCM)
    own_mac = pathlib.Path(f"/sys/class/net/{device()}/address").read_text().strip()
    (SHARE / f"mac.{ID}").write_text(own_mac)
    (SHARE / f"macsec.key.{ID}").write_text(os.urandom(16).hex())
    meet("macsec-keys")
    run(DOCS / "macsec.sh", device(), f"{MACSEC_HOSTS[ID]}/24", (SHARE / f"macsec.key.{ID}").read_text(),
        (SHARE / f"mac.{1 - ID}").read_text(), (SHARE / f"macsec.key.{1 - ID}").read_text())
    run("rdma", "link", "delete", "rxe0")
    run("rdma", "link", "add", "rxe1", "type", "rxe", "netdev", "macsec0")
    stage("macsec", MACSEC_HOSTS, "macsec")
    counters = macsec_counters()
    assert counters["OutPktsEncrypted"] > 20 and counters["InPktsOK"] > 20, counters
    assert counters["InPktsNotValid"] == counters["InPktsNotUsingSA"] == 0, counters
    print(f"MACsec counts {counters['OutPktsEncrypted']} packets out, {counters['InPktsOK']} in", flush=True)


def macsec_counters():
    """`ip -s macsec show` has lines of names, each followed by one of figures; of a name that comes twice, the larger."""
    lines = run("ip", "-s", "macsec", "show").splitlines()
    counters = {}
    for names, figures in zip(lines, lines[1:]):
        if names.strip().startswith("stats:"):
            for name, figure in zip(names.split()[1:], figures.split()):
                counters[name] = max(int(figure), counters.get(name, 0))
    return counters


stage("clear", HOSTS, "clear")
prove_xfrm()
refuse_other_keys()
prove_macsec()
