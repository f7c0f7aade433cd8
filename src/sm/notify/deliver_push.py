"""Delivers one notification to a browser's push service: a program of its own, which imports nothing of `sm`.

The browser has named the address, so it is not believed: https alone, a name that leads to public addresses of the
Internet alone, and the connection goes to the very address that was looked at. No redirect is followed and no answer is
read but its status. Reads JSON from its standard input; its exit code is the answer.

The text is encrypted for the browser (RFC 8291, by http-ece) and the request signed with this server's key (RFC 8292,
by py-vapid): what pywebpush is made of, without its two HTTP clients, which choose the address themselves.
"""

from __future__ import annotations

import base64
import http.client
import ipaddress
import json
import socket
import ssl
import sys
import time
from collections.abc import Callable, Sequence
from urllib.parse import urlsplit

NOT_INSTALLED, BAD_KEYS, NO_ADDRESS, NOT_REACHED, NOT_TAKEN, GONE = 3, 4, 5, 6, 7, 8
PROBLEMS = {
    NOT_INSTALLED: "what encrypts it is not installed: pip install 'agent-sm[web]' into the environment of sm",
    BAD_KEYS: "the browser's keys are not valid",
    NO_ADDRESS: "the browser's push service has no public address that is known here",
    NOT_REACHED: "the browser's push service cannot be reached by https",
    NOT_TAKEN: "the browser's push service did not take it",
    GONE: "the browser no longer takes notifications",
}
PORT = 443
TIMEOUT_S = 10.0
"""Of each step of the connection."""
TTL_S = 86_400
"""How long the service keeps it for a device that is offline."""
SIGNED_FOR_S = 12 * 3_600
CONTACT = "mailto:sm@example.com"
"""Services want one; this server has no public one."""
GLOBAL_UNICAST = ipaddress.ip_network("2000::/3")
SIX_TO_FOUR = ipaddress.ip_network("2002::/16")
"""Leads to an IPv4 address, which may be any."""
TAKEN = range(200, 300)
GONE_STATUSES = {404, 410}


def main(
    addresses: Callable[[str], Sequence[str]] | None = None, context: ssl.SSLContext | None = None, port: int = PORT
) -> int:
    """Return 0 once the service has taken it, or why not."""
    given = json.load(sys.stdin)
    url = urlsplit(given["endpoint"])
    host = url.hostname or ""
    if url.scheme != "https" or not host:
        return NO_ADDRESS
    try:
        body, headers = _sealed(given, f"https://{host}")
    except ImportError:
        return NOT_INSTALLED
    except ValueError:
        return BAD_KEYS
    path = f"{url.path or '/'}?{url.query}" if url.query else url.path or "/"
    found = (addresses or public_addresses)(host)
    for address in found:
        connection = _Connection(host, port, address, context or ssl.create_default_context())
        try:
            connection.request("POST", path, body, headers)
            status = connection.getresponse().status
        except (OSError, http.client.HTTPException, ValueError):
            continue
        finally:
            connection.close()
        return 0 if status in TAKEN else GONE if status in GONE_STATUSES else NOT_TAKEN
    return NOT_REACHED if found else NO_ADDRESS


def public_addresses(host: str) -> list[str]:
    """Return the addresses of that name to which this server may connect because a browser asked it to."""
    try:
        found = socket.getaddrinfo(host, PORT, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return []
    return [address for address in dict.fromkeys(str(each[4][0]) for each in found) if is_public(address)]


def is_public(text: str) -> bool:
    """Whether it is an address of the Internet: none of this machine, of its networks, or that hides another one."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    if isinstance(address, ipaddress.IPv6Address) and (address not in GLOBAL_UNICAST or address in SIX_TO_FOUR):
        return False
    return address.is_global and not address.is_multicast


class _Connection(http.client.HTTPSConnection):
    """Connects to one address, and wants the certificate of the name."""

    def __init__(self, host: str, port: int, address: str, context: ssl.SSLContext) -> None:
        super().__init__(host, port, timeout=TIMEOUT_S, context=context)
        self._address = address
        self._tls = context

    def connect(self) -> None:
        plain = socket.create_connection((self._address, self.port), TIMEOUT_S)
        self.sock = self._tls.wrap_socket(plain, server_hostname=self.host)


def _sealed(given: dict[str, str], audience: str) -> tuple[bytes, dict[str, str]]:
    """Return what is posted, which only the browser can read, and the headers that say who posts it."""
    import http_ece  # noqa: PLC0415  # an extra
    from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415
    from py_vapid import Vapid  # noqa: PLC0415

    key = Vapid.from_pem(given["key"].encode())
    body = http_ece.encrypt(
        given["payload"].encode(),
        private_key=ec.generate_private_key(ec.SECP256R1()),
        dh=_decoded(given["p256dh"]),
        auth_secret=_decoded(given["auth"]),
        version="aes128gcm",
    )
    claims = {"aud": audience, "exp": int(time.time()) + SIGNED_FOR_S, "sub": CONTACT}  # noqa: TID251  # no Clock here
    headers = {
        **key.sign(claims),
        "Content-Encoding": "aes128gcm",
        "Content-Type": "application/octet-stream",
        "TTL": str(TTL_S),
        "Urgency": "high",
    }
    return body, headers


def _decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


if __name__ == "__main__":
    sys.exit(main())
