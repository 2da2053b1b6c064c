"""A management controller in this process: a maker's goldens behind HTTP Basic, or what a test puts there."""

from __future__ import annotations

import base64
import contextlib
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from nicbench.core.machine import Controller
from nicbench.system.redfish.answers import parse_bios, parse_members, parse_service, parse_system

GOLDEN = Path(__file__).parent / "golden"
USER, PASSWORD = "monitor", "correct horse"
Special = Callable[[BaseHTTPRequestHandler], None]


def resources(maker: str) -> dict[str, str]:
    """The maker's answers by the path where each is found."""
    texts = {path.stem: path.read_text() for path in (GOLDEN / maker).glob("*.json")}
    bios = parse_system(texts["system"])["bios"]
    return {
        "/redfish/v1/": texts["root"],
        parse_service(texts["root"])["systems"]: texts["systems"],
        parse_members(texts["systems"])[0]: texts["system"],
        bios: texts["bios"],
        parse_bios(texts["bios"])["settings"]: texts["settings"],
    }


class Bmc:
    """``special`` answers a path in another way; ``seen`` are method and path of every request."""

    def __init__(self, answers: Mapping[str, str]) -> None:
        self.answers = dict(answers)
        self.special: dict[str, Special] = {}
        self.seen: list[tuple[str, str]] = []
        self.url = ""

    def controller(self, monkeypatch: pytest.MonkeyPatch, password: str = PASSWORD, **options: object) -> Controller:
        """How a bench file would name it."""
        monkeypatch.setenv("BMC_PASSWORD", password)
        given = {"url": self.url, "user": USER, "password_env": "BMC_PASSWORD", **options}
        return Controller.model_validate(given)


@contextlib.contextmanager
def serving(bmc: Bmc, certificate: Path | None = None) -> Iterator[Bmc]:
    """Serves it on a free port of this machine; with ``certificate`` (PEM, with its key) over TLS."""
    expected = f"Basic {base64.b64encode(f'{USER}:{PASSWORD}'.encode()).decode()}"

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            bmc.seen.append((self.command, self.path))
            if self.path in bmc.special:
                with contextlib.suppress(OSError):
                    bmc.special[self.path](self)
                return
            status = 401 if self.headers["Authorization"] != expected else 200 if self.path in bmc.answers else 404
            content = bmc.answers.get(self.path, "{}").encode() if status == 200 else b"{}"
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.block_on_close = False
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    bmc.url = f"{'https' if certificate else 'http'}://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield bmc
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
