"""What hears clients of ``nicbench serve``, in a process without root's rights: HTTPS, and HTTP and gRPC locally."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import ipaddress
import socket
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

import uvicorn
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from nicbench.otg.grpc_front import ADDRESS, serve_grpc
from nicbench.otg.http_front import make_app
from nicbench.otg.line import Calls
from nicbench.otg.serving import HTTPS_PORT, Serving
from nicbench.web.security import Door
from nicbench.web.serving import Place, listen, server_config

_HTTP_PORT: Final = 8442
_GRPC_PORT: Final = 40051
_DAYS: Final = 365


def serve_fronts(serving: Serving, password: str | None, line: socket.socket) -> None:
    """Hears clients until the other end of the line is closed. NotReadyError where it cannot listen."""
    asyncio.run(_serve(serving, password, line))


async def _serve(serving: Serving, password: str | None, line: socket.socket) -> None:
    calls = Calls(*await asyncio.open_unix_connection(sock=line))
    with tempfile.TemporaryDirectory(prefix="serve-") as folder:
        https = serving.https
        if https.tls_cert is None:
            certificate, key = make_certificate(Path(folder))
            https = replace(https, tls_cert=certificate, tls_key=key)
        http = Place(ADDRESS, serving.http_port)
        async with _http(calls, https, HTTPS_PORT, password) as secure, _http(calls, http, _HTTP_PORT, None) as plain:
            ports = (_GRPC_PORT, 0) if serving.grpc_port is None else (serving.grpc_port,)
            grpc_server, grpc_port = await serve_grpc(calls, ports)
            try:
                calls.tell(f"{secure}  {plain}  grpc://{ADDRESS}:{grpc_port}")
                await calls.hear()
            finally:
                await grpc_server.stop(grace=None)


class _Server(uvicorn.Server):
    """Leaves signals to the other process."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@asynccontextmanager
async def _http(calls: Calls, place: Place, default_port: int, password: str | None) -> AsyncIterator[str]:
    """Serves HTTP at a place, and gives its address."""
    listening = listen(place, default_port)
    port = listening.getsockname()[1]
    door = Door.of(place.known_as, port, tls=place.tls_cert is not None, password=password)
    server = _Server(server_config(make_app(calls, door), place))
    task = asyncio.ensure_future(server.serve(sockets=[listening]))
    try:
        yield f"{door.scheme}://{place.shown}:{port}"
    finally:
        server.should_exit = True
        await asyncio.gather(task, return_exceptions=True)
        listening.close()


def make_certificate(folder: Path) -> tuple[Path, Path]:
    """Writes a self-signed certificate for localhost and its key into a folder, and returns their paths."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    addresses = [x509.IPAddress(ipaddress.ip_address(address)) for address in ("127.0.0.1", "::1")]
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=_DAYS))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost"), *addresses]), critical=False)
        .sign(key, hashes.SHA256())
    )
    paths = folder / "certificate.pem", folder / "key.pem"
    paths[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    paths[1].touch(mode=0o600)
    paths[1].write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return paths
