"""A peer of the backend's shm socket, and a backend that a proxy connects to: every byte and every descriptor is in the test's hands.
The frames are those of protocol/wire/README.md."""

import array
import contextlib
import ctypes
import fcntl
import mmap
import os
import select
import signal
import socket
import struct

MAGIC = b"GRETFWP1"
HELLO, GRANT, REFUSAL, READY = 1, 2, 3, 4
ORDERED_MEMORY, WAKE_TIMERS = 2, 4
F_ADD_SEALS, F_SEAL_SHRINK, F_SEAL_GROW = 1033, 2, 4
SO_PASSRIGHTS = 83

libc = ctypes.CDLL(None, use_errno=True)


def socket_name(address):
    """What connect() and bind() want for shm:PATH or shm:@NAME."""
    name = address.removeprefix("shm:")
    return "\0" + name[1:] if name.startswith("@") else name


def frame(kind, body=b""):
    return MAGIC + struct.pack("<HBBI", 1, kind, 0, 16 + len(body)) + body


def hello(worker=None, features=ORDERED_MEMORY | WAKE_TIMERS, window=2):
    worker = int.from_bytes(os.urandom(8), "little") if worker is None else worker
    return frame(HELLO, struct.pack("<QQI", features, worker, window))


def kernel_refuses_descriptors():
    """Whether this kernel has SO_PASSRIGHTS."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        try:
            sock.setsockopt(socket.SOL_SOCKET, SO_PASSRIGHTS, 0)
            return True
        except OSError:
            return False


def timerfd():
    fd = libc.timerfd_create(1, 0o2000000 | 0o4000)
    assert fd >= 0
    return fd


def memory(size, allocated=True, seals=F_SEAL_SHRINK | F_SEAL_GROW):
    fd = os.memfd_create("hostile", os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
    os.ftruncate(fd, size)
    if allocated:
        os.posix_fallocate(fd, 0, size)
    fcntl.fcntl(fd, F_ADD_SEALS, seals)
    return fd


class Peer:
    """A client of the backend."""

    def __init__(self, address, timeout=20):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.sock.settimeout(timeout)
        self.sock.connect(socket_name(address))
        self.fds = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def open_session(self, **wanted):
        """The grant's fields; the four descriptors of the region are in self.fds."""
        self.sock.send(hello(**wanted))
        data, ancillary, _, _ = self.sock.recvmsg(512, socket.CMSG_SPACE(4 * 8))
        for level, kind, payload in ancillary:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                fds = array.array("i")
                fds.frombytes(payload[:len(payload) // 4 * 4])
                self.fds += list(fds)
        if data[10:11] != bytes([GRANT]):
            raise ConnectionRefusedError(data[18:].decode(errors="replace"))
        fields = struct.unpack_from("<QQQQQIIIII", data, 16)
        names = ("features", "session", "nonce", "epoch", "hash_seed", "item_size_max", "lanes", "window", "request_slot", "response_slot")
        return dict(zip(names, fields))

    def send_descriptors(self, fds, data=None):
        """Whether the kernel let them through."""
        try:
            socket.send_fds(self.sock, [hello() if data is None else data], fds)
            return True
        except PermissionError:
            return False

    def drop_descriptors(self):
        for fd in self.fds:
            os.close(fd)
        self.fds = []

    def close(self):
        self.drop_descriptors()
        self.sock.close()


UPLOAD, ABORT, STATS, PING = 6, 8, 10, 13  # ops
OK, OUT_OF_MEMORY, NO_UPLOAD = 0, 10, 12  # results

_xxhash = ctypes.CDLL("libxxhash.so.0").XXH3_64bits_withSeed
_xxhash.restype, _xxhash.argtypes = ctypes.c_uint64, [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_uint64]


def op(code, fields=b"", key=b"", value=b""):
    return struct.pack("<BBHI", code, len(key), 0, len(value)) + fields + key + value


def stats_op(cursor=0):
    return op(STATS, struct.pack("<IQ", 0, cursor))


def upload_op(number, offset, length, key, value):
    return op(UPLOAD, struct.pack("<III", number, offset, length), key, value)


def abort_op(number, key):
    return op(ABORT, struct.pack("<I", number), key)


TFD_IOC_SET_TICKS = 0x40085400


class Session(Peer):
    """A client of the backend with an open session, as one of 0.1.0 unless told otherwise: messages of any ops, sealed as they should be."""

    def __init__(self, address, features=ORDERED_MEMORY, **wanted):
        super().__init__(address)
        self.has_timers = bool(features & WAKE_TIMERS)
        self.shape = self.open_session(features=features, **wanted)
        self.sock.send(frame(READY))
        lanes, window = self.shape["lanes"], self.shape["window"]
        slots = lanes * (64 + window * self.shape["request_slot"])
        self.rings = (slots + 63) // 64 * 64
        self.requests = mmap.mmap(self.fds[0], self.rings + (1 + lanes) * 8)
        self.responses = mmap.mmap(self.fds[1], lanes * window * self.shape["response_slot"], prot=mmap.PROT_READ)
        self.sent = [0] * lanes

    def send(self, ops, lane=0):
        """Puts a message into the next slot of the lane, and rings. Its seq; wait for answers before the window is full."""
        self.sent[lane] += 1
        seq, body = self.sent[lane], b"".join(ops)
        at = self.shape["lanes"] * 64 + (lane * self.shape["window"] + seq % self.shape["window"]) * self.shape["request_slot"]
        assert 24 + len(body) <= self.shape["request_slot"]
        head = struct.pack("<IHH", len(body), len(ops), 0)
        seed = (self.shape["nonce"] + seq * 0x9E3779B97F4A7C15) % 2**64
        self.requests[at + 8:at + 24 + len(body)] = struct.pack("<Q", _xxhash(head, len(head), seed)) + head + body
        self.requests[at:at + 8] = struct.pack("<Q", seq)  # last: it shows the message
        for place in (self.rings + (1 + lane) * 8, self.rings):
            rings = struct.unpack_from("<Q", self.requests, place)[0]
            struct.pack_into("<Q", self.requests, place, rings + 1)
        if self.has_timers:
            fcntl.ioctl(self.fds[2], TFD_IOC_SET_TICKS, struct.pack("<Q", 1))
        else:
            os.eventfd_write(self.fds[2], 1)
        return seq

    def want_next(self, lane=0):
        """Its next answer is to be delivered: the backend wakes this end then."""
        struct.pack_into("<Q", self.requests, lane * 64, self.sent[lane] + 1)

    def answer(self, seq, lane=0):
        """The codes and values of the results, or None: it is not there yet."""
        at = (lane * self.shape["window"] + seq % self.shape["window"]) * self.shape["response_slot"]
        if struct.unpack_from("<Q", self.responses, at)[0] != seq:
            return None
        length, count = struct.unpack_from("<IH", self.responses, at + 24)
        body = self.responses[at + 40:at + 40 + length]
        results, place = [], 0
        for _ in range(count):
            code, fields, _, _, value = struct.unpack_from("<BBBBI", body, place)
            place += 8 + sum(size for bit, size in enumerate((4, 8, 12, 8, 12)) if fields >> bit & 1)
            results.append((code, body[place:place + value]))
            place += value
        return results

    def call(self, ops, lane=0):
        seq = self.send(ops, lane)
        while (results := self.answer(seq, lane)) is None:
            assert not self.has_ended(), "the session was ended"
        return results

    def has_ended(self):
        return bool(select.select([self.sock], [], [], 0)[0]) and self.sock.recv(512, socket.MSG_PEEK) == b""

    def close(self):
        self.requests.close()
        self.responses.close()
        super().close()


class FalseBackend:
    """Listens where a proxy looks for a backend, and grants what the test likes."""

    LANES, WINDOW, REQUEST, RESPONSE = 1, 2, 1024, 1024

    def __init__(self, address):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.sock.settimeout(20)
        self.sock.bind(socket_name(address))
        self.sock.listen(64)
        self.peers = []

    def accept(self):
        peer, _ = self.sock.accept()
        peer.settimeout(20)
        self.peers.append(peer)
        return peer, peer.recv(512)

    def sizes(self, lanes=LANES, window=WINDOW, request=REQUEST, response=RESPONSE):
        """Of the two memory files."""
        requests = lanes * (64 + window * request)
        return (requests + 63) // 64 * 64 + (1 + lanes) * 8, lanes * window * response

    def grant(self, peer, fds, features=ORDERED_MEMORY | WAKE_TIMERS, lanes=LANES, window=WINDOW, request=REQUEST, response=RESPONSE):
        body = struct.pack("<QQQQQIIIII", features, 1, 2, 3, 4, 1 << 20, lanes, window, request, response)
        socket.send_fds(peer, [frame(GRANT, body)], fds)

    def close(self):
        for peer in self.peers:
            peer.close()
        self.sock.close()


@contextlib.contextmanager
def halted(daemon):
    """It stands still meanwhile: what is sent to it waits in queues, and the sender's own descriptors can be closed before it has seen them."""
    daemon.halt()
    try:
        yield
    finally:
        daemon.signal(signal.SIGCONT)


def let_go(sender):
    """Closes a lingering socket that nobody else has open, without waiting."""
    sender.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 0, 0))
    sender.close()


def lingering_socket():
    """A TCP socket whose close takes as long as its peer likes: what it has sent is never read. Returns what must be kept open until the
    descriptor has been sent, too."""
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    listener.bind(("127.0.0.1", 0))
    listener.listen(1)
    sender = socket.socket()
    sender.connect(listener.getsockname())
    receiver, _ = listener.accept()
    sender.setblocking(False)
    try:
        while True:
            sender.send(b"x" * 65536)
    except BlockingIOError:
        pass
    sender.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 120))
    return sender, (listener, receiver)
