"""The server as it is started: over TLS with a password, at an address that it says, until a signal ends it."""

from __future__ import annotations

import datetime
import signal
import ssl
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from tests.web._browser import served
from tests.web._folders import make_run, started

PASSWORD = "correct horse battery"


@pytest.fixture
def tls(tmp_path: Path) -> list[str]:
    """The options of a server with a certificate of its own for localhost, and a password."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    plain = (serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (tmp_path / "cert.pem").write_bytes(certificate.public_bytes(pem))
    (tmp_path / "key.pem").write_bytes(key.private_bytes(pem, *plain))
    (tmp_path / "password").write_text(PASSWORD)
    (tmp_path / "password").chmod(0o600)
    files = {"--tls-cert": "cert.pem", "--tls-key": "key.pem", "--password-file": "password"}
    return [word for option, name in files.items() for word in (option, str(tmp_path / name))]


def test_it_is_reached_over_tls_with_its_password_under_its_names_alone(
    runs: Path, tls: list[str], tmp_path: Path
) -> None:
    make_run(runs, "one", started("Mine"))
    with served(runs, options=["--host", "0.0.0.0", "--name", "localhost", *tls]) as (address, process):
        assert address.startswith("https://0.0.0.0:")
        known = f"https://localhost:{address.rpartition(':')[2]}"
        context = ssl.create_default_context(cafile=str(tmp_path / "cert.pem"))
        with httpx.Client(verify=context, trust_env=False) as client:
            assert client.get(f"{known}/api/runs").status_code == 401
            answer = client.get(f"{known}/api/runs", auth=("anybody", PASSWORD))
            assert [row["title"] for row in answer.json()["rows"]] == ["Mine"]
            others = {"Host": "evil.example"}
            assert client.get(f"{known}/api/runs", auth=("anybody", PASSWORD), headers=others).status_code == 421
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0


def test_it_says_what_it_lacks_before_it_listens(runs: Path) -> None:
    command = [sys.executable, "-m", "nicbench", "web", str(runs), "--host", "0.0.0.0"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2
    assert "--tls-cert and --password-file must be given" in done.stderr
    assert "ssh -L" in done.stderr
