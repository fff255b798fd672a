"""What tests of TLS need: certificates made on the fly, a proxy with a tls: listener, clients of it."""

import datetime
import ipaddress
import ssl

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from servers import Egret, connect, free_port

HOUR = 3600


class Authority:
    """One that signs certificates, and the folder it keeps them in. Its own is ca.pem."""

    def __init__(self, folder, name="authority"):
        folder.mkdir(exist_ok=True)
        self.folder = folder
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.pem = self._sign(self.name, self.key.public_key(), is_authority=True, begins=-HOUR, ends=24 * HOUR)
        self.path = folder / "ca.pem"
        self.path.write_bytes(self.pem)

    def _sign(self, subject, public_key, is_authority, begins, ends, serial=None, for_whom=()):
        now = datetime.datetime.utcnow()
        builder = (x509.CertificateBuilder().subject_name(subject).issuer_name(self.name).public_key(public_key)
                   .serial_number(serial or x509.random_serial_number())
                   .not_valid_before(now + datetime.timedelta(seconds=begins))
                   .not_valid_after(now + datetime.timedelta(seconds=ends))
                   .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True))
        if for_whom:
            builder = builder.add_extension(x509.SubjectAlternativeName(for_whom), critical=False)
        return builder.sign(self.key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)

    def issue(self, name, begins=-HOUR, ends=HOUR, serial=None, names=(), addresses=()):
        """The paths of a new certificate, NAME.pem, for these DNS names and IP addresses, and of its key, NAME.key."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        for_whom = [x509.DNSName(each) for each in names] + [x509.IPAddress(ipaddress.ip_address(each)) for each in addresses]
        certificate, secret = self.folder / f"{name}.pem", self.folder / f"{name}.key"
        certificate.write_bytes(self._sign(subject, key.public_key(), False, begins, ends, serial, for_whom))
        secret.write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
                                             serialization.NoEncryption()))
        return certificate, secret


class TlsEgret(Egret):
    """An Egret whose proxies have a tls: listener as well, at tls_address (of the newest)."""

    def __init__(self, certificate, key, proxy=None, **egret_arguments):
        super().__init__(proxy={"tls_certificate": certificate, "tls_key": key, **(proxy or {})}, **egret_arguments)

    def listen_of_proxy(self, index):
        self.tls_address = ("127.0.0.1", free_port())
        return super().listen_of_proxy(index) + ",tls:%s:%d" % self.tls_address


def client_context(authority=None, certificate=None, newest=None, oldest=None):
    """What a client trusts, shows and speaks."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.options &= ~0x80  # SSL_OP_IGNORE_UNEXPECTED_EOF, Python's default: an end without a goodbye is an error here
    context.verify_mode = ssl.CERT_REQUIRED if authority else ssl.CERT_NONE
    if authority:
        context.load_verify_locations(str(authority.path))
    if certificate:
        context.load_cert_chain(*map(str, certificate))
    if newest:
        context.maximum_version = newest
    if oldest:
        context.minimum_version = oldest
    return context


def connect_tls(address, context=None, timeout=30.0, session=None):
    """A connected socket on which TLS is spoken."""
    raw = connect(address, timeout)
    try:
        return (context or client_context()).wrap_socket(raw, session=session, suppress_ragged_eofs=False)
    except BaseException:
        raw.close()
        raise


def read_until(sock, end):
    """Everything up to and with `end`."""
    answer = bytearray()
    while not answer.endswith(end):
        piece = sock.recv(1 << 20)
        assert piece, f"closed after {bytes(answer[-200:])!r}"
        answer += piece
    return bytes(answer)


def ask_tls(address, request, end=b"\r\n", context=None):
    with connect_tls(address, context) as sock:
        sock.sendall(request)
        return read_until(sock, end)


class Handshake:
    """A client's side of TLS whose bytes the test carries itself."""

    def __init__(self, context=None):
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = (context or client_context()).wrap_bio(self.incoming, self.outgoing)

    def next_flight(self):
        """What is to be sent next; nothing when the handshake is over."""
        try:
            self.tls.do_handshake()
        except ssl.SSLWantReadError:
            pass
        return self.outgoing.read()

    def finish(self, sock, send=None):
        """All of it over `sock`."""
        while True:
            flight = self.next_flight()
            if flight:
                (send or sock.sendall)(flight)
            try:
                self.tls.do_handshake()
                return self
            except ssl.SSLWantReadError:
                self.incoming.write(sock.recv(65536))

    def seal(self, data):
        """The records that carry `data`."""
        self.tls.write(data)
        return self.outgoing.read()
