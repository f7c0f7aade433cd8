"""A push service on this machine, in the place of one of a browser's maker; and a browser that reads what it carries.

The browser decrypts by RFC 8291 with primitives alone: nothing of it is what `sm` encrypts with.
"""

import base64
import datetime as dt
import json
import os
import ssl
import sys
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, utils
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from sm.core.model.device import PushSubscription

HOST = "push.example.net"
POINT = (serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint)
PROGRAM = """
import ssl, sys
from sm.notify import deliver_push
sys.exit(deliver_push.main({addresses}, ssl.create_default_context(cafile={authority!r}), {port}))
"""
"""The real delivery, but for the addresses that a name has and the authority whose certificates it believes."""


def encoded(data):
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def decoded(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


@dataclass
class Subscriber:
    """A browser, with the keys that it alone has."""

    key: object = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))
    auth: bytes = field(default_factory=lambda: os.urandom(16))

    @property
    def point(self):
        return self.key.public_key().public_bytes(*POINT)

    def subscription(self, path="/of/this/browser", host=HOST):
        return PushSubscription(f"https://{host}{path}", encoded(self.point), encoded(self.auth))

    def body(self, **changes):
        """What the page sends of it."""
        own = self.subscription(**changes)
        return json.dumps({"endpoint": own.endpoint, "keys": {"p256dh": own.p256dh, "auth": own.auth}})

    def read(self, body):
        salt, size, length = body[:16], int.from_bytes(body[16:20]), body[20]
        sender, sealed = body[21 : 21 + length], body[21 + length :]
        assert len(sealed) <= size
        shared = self.key.exchange(ec.ECDH(), ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), sender))
        secret = derived(shared, self.auth, b"WebPush: info\0" + self.point + sender, 32)
        key = derived(secret, salt, b"Content-Encoding: aes128gcm\0", 16)
        nonce = derived(secret, salt, b"Content-Encoding: nonce\0", 12)
        plain, end, padding = AESGCM(key).decrypt(nonce, sealed, None).rpartition(b"\2")
        assert (end, padding.strip(b"\0")) == (b"\2", b"")
        return plain


def derived(secret, salt, info, length):
    return HKDF(hashes.SHA256(), length, salt, info).derive(secret)


def signed_by(authorization):
    """Return the point of the key that has signed the header, and what it claims."""
    kind, _, rest = authorization.partition(" ")
    assert kind == "vapid"
    parts = dict(part.split("=", 1) for part in rest.split(","))
    head, claims, signature = parts["t"].split(".")
    raw = decoded(signature)
    point = decoded(parts["k"])
    public = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), point)
    whole = utils.encode_dss_signature(int.from_bytes(raw[:32]), int.from_bytes(raw[32:]))
    public.verify(whole, f"{head}.{claims}".encode(), ec.ECDSA(hashes.SHA256()))
    return point, json.loads(decoded(claims))


def certificate(place, host=HOST):
    """Write a certificate of that host that is its own authority; return its path and that of its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, host)])
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    paths = place / "push.crt", place / "push.key"
    paths[0].write_bytes(made.public_bytes(serialization.Encoding.PEM))
    pem = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    paths[1].write_bytes(key.private_bytes(*pem))
    return paths


@dataclass
class PushService:
    place: object
    taken: list = field(default_factory=list)
    """Path, headers and body of every request, in order."""
    status: int = 201
    location: str = ""
    port: int = 0
    connections: int = 0

    @contextmanager
    def listening(self):
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                content = self.rfile.read(int(self.headers["Content-Length"]))
                service.taken.append((self.path, dict(self.headers), content))
                self.send_response(service.status)
                if service.location:
                    self.send_header("Location", service.location)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        class Server(ThreadingHTTPServer):
            def verify_request(self, request, client_address):
                service.connections += 1
                return True

            def handle_error(self, request, client_address):
                pass

        self.certificate, key = certificate(self.place)
        server = Server(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate, key)
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.port = server.server_port
        try:
            yield self
        finally:
            server.shutdown()
            server.server_close()

    def program(self, addresses="lambda host: ['127.0.0.1']"):
        """The delivery as the server starts it, which finds this service by any name."""
        script = self.place / "deliver.py"
        script.write_text(PROGRAM.format(addresses=addresses, authority=str(self.certificate), port=self.port))
        return (sys.executable, "-I", str(script))
