"""memcached's binary protocol as bytes: requests to send, and answers made comparable."""

import struct

from dialog import Case, Renaming

HEADER = struct.Struct(">BBHBBHIIQ")  # magic, opcode, key length, extras length, data type, vbucket or status, body length, opaque, CAS
REQUEST, ANSWER = 0x80, 0x81

(GET, SET, ADD, REPLACE, DELETE, INCREMENT, DECREMENT, QUIT, FLUSH, GETQ, NOOP, VERSION, GETK, GETKQ, APPEND, PREPEND, STAT, SETQ, ADDQ, REPLACEQ,
 DELETEQ, INCREMENTQ, DECREMENTQ, QUITQ, FLUSHQ, APPENDQ, PREPENDQ, VERBOSITY, TOUCH, GAT, GATQ) = range(0x1F)
SASL_LIST_MECHS, SASL_AUTH, SASL_STEP, GATK, GATKQ = 0x20, 0x21, 0x22, 0x23, 0x24

NO_CREATE = 0xFFFFFFFF


def wire_length(data):
    """Bytes when sent: a key mark like <k> is longer then (see dialog.Case)."""
    return len(Case(data).pieces[0]) if b"<" in data else len(data)


def packet(opcode, key=b"", extras=b"", value=b"", cas=0, opaque=0, *, key_length=None, extras_length=None, body_length=None, magic=REQUEST,
           data_type=0,
           vbucket=0):
    """A request; the lengths are right unless they are given."""
    key_length = wire_length(key) if key_length is None else key_length
    extras_length = len(extras) if extras_length is None else extras_length
    body_length = len(extras) + wire_length(key) + wire_length(value) if body_length is None else body_length
    return HEADER.pack(magic, opcode, key_length, extras_length, data_type, vbucket, body_length, opaque, cas) + extras + key + value


def store(opcode, key, value, flags=0, exptime=0, cas=0, opaque=0):
    return packet(opcode, key, struct.pack(">II", flags, exptime), value, cas, opaque)


def count(opcode, key, delta=1, initial=0, exptime=0, cas=0, opaque=0):
    return packet(opcode, key, struct.pack(">QQI", delta, initial, exptime), b"", cas, opaque)


def touch(opcode, key, exptime, cas=0, opaque=0):
    return packet(opcode, key, struct.pack(">I", exptime), b"", cas, opaque)


def noop(opaque=0xFFFF):
    return packet(NOOP, opaque=opaque)


def answers(data):
    """(header tuple, body) of each whole answer, and the rest."""
    at = 0
    found = []
    while len(data) - at >= HEADER.size:
        header = HEADER.unpack_from(data, at)
        if header[0] != ANSWER or len(data) - at < HEADER.size + header[6]:
            break
        found.append((header, data[at + HEADER.size:at + HEADER.size + header[6]]))
        at += HEADER.size + header[6]
    return found, data[at:]


def comparable(data, of_a_pool=False, rename=None):
    """The answers as text, a line each: CAS numbers renamed, the version left out, statistics only as there being some."""
    rename = rename or Renaming(of_a_pool)
    out = []
    packets, rest = answers(data)
    for (_, opcode, key_length, extras_length, data_type, status, length, opaque, cas), body in packets:
        if opcode == STAT and status == 0 and key_length:
            body, key_length, length = b"statistics", 0, 0
        if opcode == VERSION and status == 0:
            body, length = b"version", 0
        line = b"op=%02x status=%02x key=%d extras=%d type=%d length=%d opaque=%x cas=%s %s\n" % (
            opcode, status, key_length, extras_length, data_type, length, opaque, rename(b"%d" % cas), body)
        if not (b"statistics" in line and out and out[-1] == line):
            out.append(line)
    return b"".join(out) + rest
