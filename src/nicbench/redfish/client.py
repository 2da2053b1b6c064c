"""GET of a management controller, and nothing else: bounded in time and size, never redirected to another host.

HTTP Basic (DSP0266 13.3.2, which every service must take): a session would have to be made by a POST. Proxies of the
environment are not used, for the password is in every request.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import http.client
import ssl
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, Final, TypeVar
from urllib.parse import urlsplit

from nicbench.model.controller import Controller
from nicbench.redfish.errors import RedfishError
from nicbench.redfish.password import password_of

LARGEST_ANSWER_BYTES: Final = 4 << 20
"""The BIOS resource of a large server has some 100 KiB."""
_CHUNK: Final = 64 << 10
Answer = TypeVar("Answer")


class Client:
    """``patience_s`` is for one answer, from the connection to its last byte."""

    def __init__(self, controller: Controller, patience_s: float = 5.0) -> None:
        self._url = controller.url
        self._patience_s = patience_s
        user = f"{controller.user}:{password_of(controller)}".encode()
        self._authorization = f"Basic {base64.b64encode(user).decode()}"
        self._opener = _opener(controller)

    async def get(self, path: str) -> str:
        """The text of a resource; RedfishError with the reason where there is none."""
        try:
            return await asyncio.wait_for(_in_thread(lambda: self._get(path)), self._patience_s + 1)
        except TimeoutError:
            raise self._silent() from None

    def _get(self, path: str) -> str:
        ends = time.monotonic() + self._patience_s
        headers = {"Accept": "application/json", "OData-Version": "4.0", "Authorization": self._authorization}
        request = urllib.request.Request(self._url + path, headers=headers, method="GET")  # noqa: S310 - checked scheme
        try:
            with self._opener.open(request, timeout=self._patience_s) as answer:
                return self._read(answer, ends)
        except urllib.error.HTTPError as error:
            error.close()
            raise RedfishError(_refusal(error.code)) from None
        except (TimeoutError, urllib.error.URLError, OSError, http.client.HTTPException, ValueError) as error:
            reason = error.reason if isinstance(error, urllib.error.URLError) else error
            if isinstance(reason, TimeoutError):
                raise self._silent() from None
            raise RedfishError(_failure(reason)) from None

    def _read(self, answer: Any, ends: float) -> str:
        content = bytearray()
        while chunk := answer.read1(_CHUNK):
            content += chunk
            if len(content) > LARGEST_ANSWER_BYTES:
                raise RedfishError(f"the management controller's answer is over {LARGEST_ANSWER_BYTES >> 20} MiB long")
            if time.monotonic() > ends:
                raise self._silent()
        try:
            return content.decode()
        except UnicodeDecodeError:
            raise RedfishError("the management controller's answer is no text (UTF-8)") from None

    def _silent(self) -> RedfishError:
        return RedfishError(f"the management controller does not answer within {self._patience_s:g} s")


def _refusal(status: int) -> str:
    if status == http.client.UNAUTHORIZED:
        return "the management controller refuses the user or the password (HTTP 401)"
    if status == http.client.FORBIDDEN:
        return "the management controller does not let this user read (HTTP 403)"
    if status == http.client.NOT_FOUND:
        return "the management controller has no such resource (HTTP 404)"
    return f"the management controller answers with HTTP {status}"


def _failure(reason: object) -> str:
    """In words that name no host."""
    if isinstance(reason, ssl.SSLCertVerificationError):
        why = _CERTIFICATE.get(reason.verify_code, "see `verify`")
        return f"the management controller's certificate is not trusted: {why}"
    if isinstance(reason, ssl.SSLError):
        return f"no TLS with the management controller: {reason.reason or 'it speaks something else'}"
    if isinstance(reason, OSError) and reason.strerror:
        return f"the management controller cannot be reached: {reason.strerror}"
    return f"the management controller does not speak HTTP: {type(reason).__name__}"


# Codes of X509_verify_cert(3).
_CERTIFICATE: Final = {
    10: "it has expired",
    18: "it is self-signed; give it as the file of `verify`",
    19: "its authority is unknown; give that as the file of `verify`",
    20: "its authority is unknown; give that as the file of `verify`",
    62: "it is of another host name",
    64: "it is of another address",
}


class _SameHost(urllib.request.HTTPRedirectHandler):
    """Follows within scheme, host and port: elsewhere the password has no business."""

    max_redirections = 3

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        fp.close()
        if urlsplit(newurl)[:2] != urlsplit(req.full_url)[:2]:
            raise RedfishError("the management controller redirects to another host, which is not followed")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _opener(controller: Controller) -> urllib.request.OpenerDirector:
    """Of http and https alone: no files, no ftp, no proxy."""
    opener = urllib.request.OpenerDirector()
    try:
        authorities = None if controller.verify is True else str(Path(str(controller.verify)).expanduser())
        context = ssl.create_default_context(cafile=authorities)
    except (OSError, RuntimeError) as error:
        why = getattr(error, "strerror", None) or "no certificate is in it"
        raise RedfishError(f"the CA file of `verify` cannot be used: {why}") from None
    for handler in (
        urllib.request.HTTPHandler(),
        urllib.request.HTTPSHandler(context=context),
        urllib.request.HTTPErrorProcessor(),
        urllib.request.HTTPDefaultErrorHandler(),
        _SameHost(),
    ):
        opener.add_handler(handler)
    return opener


async def _in_thread(work: Callable[[], Answer]) -> Answer:
    """In a thread of its own that nobody waits for: a controller that trickles cannot hold up the end of a run."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Answer] = loop.create_future()

    def settle(answer: Answer | None, error: BaseException | None) -> None:
        if done.done():
            return
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(answer)  # type: ignore[arg-type]

    def run() -> None:
        answer, failure = None, None
        try:
            answer = work()
        except Exception as error:  # raised again where it is awaited
            failure = error
        with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(settle, answer, failure)

    threading.Thread(target=run, name="redfish", daemon=True).start()
    return await done
