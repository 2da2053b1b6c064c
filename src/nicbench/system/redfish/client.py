"""GET of a management controller, and nothing else: bounded in time and size, never redirected to another host.

HTTP Basic (DSP0266 13.3.2, which every service must take): a session would have to
be made by a POST. Proxies and ``.netrc`` of the environment are not used, for the password is in every request; it is
read when it is used, from the environment or a file of its owner alone.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import socket
import ssl
import stat
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import httpx

from nicbench.core.machine import Controller
from nicbench.system.redfish.answers import RedfishError

# The password in what a management controller answers: a controller that sends it back gets it into no file of ours.
# Every request bears it, so whoever speaks as the controller knows it. What is recognised: the password, and it or
# ``user:password`` in base64 (RFC 4648, wherever it begins in what was encoded), in hexadecimal, and percent-encoded.

REDACTED: Final = "(redacted)"
_SHORTEST = 4
"""Shorter ones are found as whole values alone: anywhere else they would be parts of ordinary words."""


def forms_of(user: str, password: str) -> tuple[str, ...]:
    """How the password may be written, the longest first."""
    found = {password, quote(password, safe="")}
    for secret in (password.encode(), f"{user}:{password}".encode()):
        found |= {secret.hex(), secret.hex().upper()}
        for offset in range(3):
            found |= {_encode(secret, offset), _encode(secret, offset).translate(_URL_SAFE)}
    return tuple(sorted((form for form in found if form), key=len, reverse=True))


_URL_SAFE: Final = str.maketrans("+/", "-_")


def _encode(secret: bytes, offset: int) -> str:
    """What base64 makes of it behind ``offset`` other bytes: only the letters that depend on the secret alone."""
    text = base64.b64encode(bytes(offset) + secret).decode()
    whole = text.rstrip("=")
    return whole[(0, 2, 3)[offset] : len(whole) - (whole != text)]


def without(text: str, forms: tuple[str, ...]) -> str:
    """Returns the document without any of them, in names too. Text that is not JSON is returned without them as
    well.
    """
    try:
        return json.dumps(_without(json.loads(text), forms))
    except (ValueError, RecursionError):
        return _replace(text, forms)


def _without(content: Any, forms: tuple[str, ...]) -> Any:
    if isinstance(content, dict):
        return {_replace(name, forms): _without(value, forms) for name, value in content.items()}
    if isinstance(content, list):
        return [_without(value, forms) for value in content]
    if isinstance(content, str):
        return _replace(content, forms)
    is_number = isinstance(content, int | float) and not isinstance(content, bool)
    return REDACTED if is_number and str(content) in forms else content


def _replace(text: str, forms: tuple[str, ...]) -> str:
    # Letters that cannot be seen are dropped later: they must not hide it until then.
    seen = "".join(letter for letter in text if letter.isprintable())
    if not any(form in seen for form in forms):
        return text
    if seen in forms:
        return REDACTED
    for form in forms:
        if len(form) >= _SHORTEST:
            seen = seen.replace(form, REDACTED)
    return seen


_LONGEST: Final = 1024


def password_of(controller: Controller) -> str:
    """RedfishError if the file is missing or readable by others; it says what to do and never what was read."""
    if controller.password_env is not None:
        password = os.environ.get(controller.password_env)
        if not password:
            raise RedfishError(
                f"the environment variable {controller.password_env} with the controller's password is not set",
                next_step=f"set it where nicbench is started (sudo: --preserve-env={controller.password_env})",
            )
        return password
    return _read_file(controller.password_file or "")


def _read_file(name: str) -> str:
    try:
        handle = os.open(Path(name).expanduser(), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, RuntimeError) as error:
        why = error.strerror if isinstance(error, OSError) else "no home folder is known"
        raise RedfishError(f"the controller's password file cannot be read: {why}") from None
    with os.fdopen(handle, "rb") as stream:
        state = os.fstat(stream.fileno())
        if not stat.S_ISREG(state.st_mode):
            raise RedfishError("the controller's password file is no regular file")
        if state.st_mode & 0o077:
            raise RedfishError(
                f"the controller's password file can be used by others (mode {state.st_mode & 0o777:04o})",
                next_step=f"chmod 600 {name}",
            )
        content = stream.read(_LONGEST + 1)
    try:
        password = content.decode().rstrip("\r\n")
    except UnicodeDecodeError:
        password = ""
    if not password or len(content) > _LONGEST:
        raise RedfishError(f"the controller's password file holds no password of 1 to {_LONGEST} bytes")
    return password


LARGEST_ANSWER_BYTES: Final = 4 << 20
"""The BIOS resource of a large server has some 100 KiB."""
_MOST_REDIRECTIONS: Final = 3
_HEADERS: Final = {
    "Accept": "application/json",
    "Accept-Encoding": "identity",  # a compressed answer would have no bound once it is unpacked
    "Connection": "close",
    "OData-Version": "4.0",
}


class Client:
    """``patience_s`` is for one answer, from the connection to its last byte."""

    def __init__(self, controller: Controller, patience_s: float = 5.0) -> None:
        password = password_of(controller)
        self._url = controller.url
        self._patience_s = patience_s
        self._authentication = httpx.BasicAuth(controller.user, password)
        self._forms = forms_of(controller.user, password)
        self._tls = _tls(controller)

    async def get(self, path: str) -> str:
        """Returns the text of a resource, without the password should it hold it; RedfishError if it cannot be read."""
        try:
            async with asyncio.timeout(self._patience_s):
                content = await self._get(path)
        except (TimeoutError, httpx.TimeoutException):
            silent = f"the management controller does not answer within {self._patience_s:g} s"
            raise RedfishError(silent) from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise RedfishError(_failure(error)) from None
        try:
            return without(content.decode(), self._forms)
        except UnicodeDecodeError:
            raise RedfishError("the management controller's answer is no text (UTF-8)") from None

    async def _get(self, path: str) -> bytes:
        """Follows redirections within scheme, host and port: elsewhere the password has no business."""
        async with httpx.AsyncClient(
            auth=self._authentication, headers=_HEADERS, verify=self._tls, trust_env=False, timeout=self._patience_s
        ) as client:
            request = client.build_request("GET", self._url + path)
            for _ in range(1 + _MOST_REDIRECTIONS):
                answer = await client.send(request, stream=True)
                if answer.is_success:
                    return await _read(answer)
                await answer.aclose()
                following = answer.next_request
                if following is None:
                    break
                if (following.url.scheme, following.url.netloc) != (request.url.scheme, request.url.netloc):
                    raise RedfishError("the management controller redirects to another host, which is not followed")
                request = following
        raise RedfishError(_refusal(answer.status_code))


async def _read(answer: httpx.Response) -> bytes:
    content = bytearray()
    async for piece in answer.aiter_raw():
        content += piece
        if len(content) > LARGEST_ANSWER_BYTES:
            raise RedfishError(f"the management controller's answer is over {LARGEST_ANSWER_BYTES >> 20} MiB long")
    return bytes(content)


def _refusal(status: int) -> str:
    if status == HTTPStatus.UNAUTHORIZED:
        return "the management controller refuses the user or the password (HTTP 401)"
    if status == HTTPStatus.FORBIDDEN:
        return "the management controller does not let this user read (HTTP 403)"
    if status == HTTPStatus.NOT_FOUND:
        return "the management controller has no such resource (HTTP 404)"
    return f"the management controller answers with HTTP {status}"


def _failure(error: Exception) -> str:
    """In words that name no host."""
    for reason in _reasons(error):
        if isinstance(reason, ssl.SSLCertVerificationError):
            why = _CERTIFICATE.get(reason.verify_code, "see `verify`")
            return f"the management controller's certificate is not trusted: {why}"
        if isinstance(reason, ssl.SSLError):
            return f"no TLS with the management controller: {reason.reason or 'it speaks something else'}"
        if isinstance(reason, OSError) and reason.errno:
            # The words of asyncio's own errors name the address.
            words = reason.strerror if isinstance(reason, socket.gaierror) else os.strerror(reason.errno)
            return f"the management controller cannot be reached: {words}"
    return f"the management controller does not speak HTTP: {type(error).__name__}"


def _reasons(error: BaseException | None) -> Iterator[BaseException]:
    """The error and what it came of; of several addresses that were tried, the first one's."""
    while error is not None:
        yield error
        error = error.exceptions[0] if isinstance(error, BaseExceptionGroup) else error.__cause__ or error.__context__


# Codes of X509_verify_cert(3).
_CERTIFICATE: Final = {
    10: "it has expired",
    18: "it is self-signed; give it as the file of `verify`",
    19: "its authority is unknown; give that as the file of `verify`",
    20: "its authority is unknown; give that as the file of `verify`",
    62: "it is of another host name",
    64: "it is of another address",
}


def _tls(controller: Controller) -> ssl.SSLContext:
    """By the authorities of this machine, or those of the file; not those that come with httpx."""
    try:
        authorities = None if controller.verify is True else str(Path(str(controller.verify)).expanduser())
        return ssl.create_default_context(cafile=authorities)
    except (OSError, RuntimeError) as error:
        why = getattr(error, "strerror", None) or "no certificate is in it"
        raise RedfishError(f"the CA file of `verify` cannot be used: {why}") from None
