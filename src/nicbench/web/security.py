"""What the server refuses, before any view sees a request.

- A ``Host`` that is not one of its own: a name of another site that was made to lead to this machine (DNS rebinding).
- Whatever changes something (any method but GET and HEAD) without this server's token, from another origin, or with a
  large body: another site cannot make a browser stop a run (CSRF), and none may read what is answered (no CORS).
- The token itself, to all but a page of this origin: one that was loaded from an earlier server at this address.
- Everything without the password, where one is set.

Every answer has a policy by which the page runs only the server's own scripts and styles, and asks only this server.
"""

from __future__ import annotations

import base64
import binascii
import secrets
from collections.abc import Iterable
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from nicbench.core.frozen import frozen

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; frame-ancestors 'none'; form-action 'self'"
)
SANDBOX: Final = (
    "sandbox allow-scripts allow-downloads allow-popups; default-src 'none'; script-src 'unsafe-inline'; "
    "style-src 'unsafe-inline'; img-src data:; font-src data:; base-uri 'none'; frame-ancestors 'none'; "
    "form-action 'none'"
)
"""The policy for a report, which may be a stranger's: its scripts have an opaque origin, and reach neither page nor
server.
"""
_HEADERS: Final = (
    ("Content-Security-Policy", POLICY),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Referrer-Policy", "no-referrer"),
    ("X-Content-Type-Options", "nosniff"),
    ("Cache-Control", "no-store"),
)
MOST_BODY_BYTES: Final = 4096
TOKEN_HEADER: Final = "X-Nicbench-Token"  # noqa: S105 - the name of a header
TOKEN_PATH: Final = "/api/token"  # noqa: S105 - an address
_READING: Final = frozenset({"GET", "HEAD"})


@frozen
class Door:
    """Who may come in. ``hosts`` are the values of ``Host`` (name and port) by which this server is known."""

    hosts: frozenset[str]
    scheme: str
    token: str
    password: str | None = None

    @classmethod
    def of(cls, names: Iterable[str], port: int, *, tls: bool, password: str | None = None) -> Door:
        """Makes a door with a fresh token. ``names`` are host names and addresses, IPv6 without brackets."""
        scheme = "https" if tls else "http"
        bracketed = [f"[{name}]" if ":" in name else name.lower() for name in names]
        hosts = {f"{name}:{port}" for name in bracketed}
        if port == (443 if tls else 80):
            hosts.update(bracketed)
        return cls(frozenset(hosts), scheme, secrets.token_urlsafe(24), password)

    def refuse_stranger(self, headers: Headers) -> Response | None:
        """Returns the answer to whoever asks by another name, or does not know the password; None to others."""
        if headers.get("host", "").lower() not in self.hosts:
            return _refusal(421, "this server is not known by that name; open the address that it printed")
        if self.password is not None and not _knows(headers.get("authorization", ""), self.password):
            answer = _refusal(401, "the password is needed")
            answer.headers["WWW-Authenticate"] = 'Basic realm="nicbench", charset="UTF-8"'
            return answer
        return None

    def refuse(self, method: str, path: str, headers: Headers) -> Response | None:
        """Returns the answer to a request of a browser that is refused; None where it may pass."""
        if (stranger := self.refuse_stranger(headers)) is not None:
            return stranger
        own = headers.get("sec-fetch-site", "") in ("", "same-origin")
        if path == TOKEN_PATH and (not own or TOKEN_HEADER not in headers):
            # Another origin cannot send this header without asking first (CORS), which is never allowed.
            return _refusal(403, "only the pages of this server may ask for that")
        if method in _READING:
            return None
        if not own or headers.get("origin") != f"{self.scheme}://{headers.get('host', '').lower()}":
            return _refusal(403, "only the pages of this server may ask for that")
        if not secrets.compare_digest(headers.get(TOKEN_HEADER, "").encode(), self.token.encode()):
            return _refusal(403, "the page is of an earlier server: load it again")
        length = headers.get("content-length", "")
        if not length.isdecimal() or len(length) > 9 or int(length) > MOST_BODY_BYTES:
            return _refusal(413, f"a request may have {MOST_BODY_BYTES} bytes, and says how many")
        return None


class Guard:
    """The outermost part of the application: lets a request in or answers it, and adds the headers to every answer."""

    def __init__(self, app: ASGIApp, door: Door) -> None:
        self._app = app
        self._door = door

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles one request; only HTTP is spoken."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS:
                    headers.setdefault(name, value)
            await send(message)

        refused = self._door.refuse(scope["method"], scope["path"], Headers(scope=scope))
        await (refused or self._app)(scope, receive, guarded)


def _refusal(status: int, text: str) -> Response:
    return PlainTextResponse(f"nicbench: {text}\n", status)


def _knows(authorization: str, password: str) -> bool:
    """Whether HTTP Basic credentials have the password; the user's name does not matter."""
    kind, _, value = authorization.partition(" ")
    if kind.lower() != "basic":
        return False
    try:
        given = base64.b64decode(value, validate=True).partition(b":")[2]
    except (binascii.Error, ValueError):
        return False
    return secrets.compare_digest(given, password.encode())
