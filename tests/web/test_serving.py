"""The server as it is started: over TLS with a password, at an address that it says, until a signal ends it."""

from __future__ import annotations

import datetime
import signal
import ssl
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from tests.web._browser import served
from tests.web._folders import make_run, started
from tests.web._history import make_history

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


@pytest.mark.parametrize("given", ["runs", "./elsewhere/../runs", "a link"])
def test_trends_explore_and_badges_have_the_runs_of_a_folder_however_it_is_named(
    given: str, runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_history(runs, 2)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "a link").symlink_to("runs")
    monkeypatch.chdir(tmp_path)
    asked = "test=throughput&value=ndr_frames_per_s"
    with served(Path(given)) as (address, _), httpx.Client(base_url=address, trust_env=False) as client:
        for path in ("trends", "explore"):
            found = _whole(client, f"/api/{path}?{asked}")
            assert sum(each["count"] for each in found["series"]) > 0
        assert client.get("/badges/throughput/ndr_frames_per_s.svg").status_code == 200
        assert len(client.get("/api/runs").json()["rows"]) == 4


def _whole(client: httpx.Client, path: str) -> dict[str, Any]:
    """The answer once all runs were read."""
    for _ in range(600):
        answer = client.get(path)
        found: dict[str, Any] = answer.json()
        if answer.status_code != 200 or (found.get("ready") and not found.get("reading")):
            assert answer.status_code == 200, found
            return found
        time.sleep(0.05)
    raise AssertionError(f"still being read: {found}")
