"""The server from its start: over TLS with a password, at an address that it says, until a signal ends it."""

from __future__ import annotations

import base64
import datetime
import hashlib
import json
import os
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
from tests.commands import run_captured, run_tried
from tests.web._browser import served
from tests.web._folders import make_run, started
from tests.web._history import make_history

from nicbench.core.errors import InterruptedRunError
from nicbench.core.events import Bus, Event, Note, RunFinished
from nicbench.core.machine import MonitorPlan
from nicbench.core.plan import Plan
from nicbench.core.result import ResultVerdict
from nicbench.store.folder import RunFolder
from nicbench.store.marks import ask_to_stop, end_where_asked, forget_request
from nicbench.web.live import LivePage, _raise_priority, cpu_time_s, free_cpus, live_page
from nicbench.web.serving import STATIC

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
    done = run_tried(command, timeout=60)
    assert done.returncode == 2
    assert "--tls-cert and --password-file must be given" in done.stderr
    assert "ssh -L" in done.stderr


@pytest.mark.sampled(1)
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
        found = answer.json()
        if answer.status_code != 200 or (found.get("ready") and not found.get("reading")):
            assert answer.status_code == 200, found
            return found
        time.sleep(0.05)
    raise AssertionError(f"still being read: {found}")


ASIDE = """
import os, sys, time
from pathlib import Path
from nicbench.web.live import step_aside
step_aside(Path(sys.argv[1]))
end = time.monotonic() + 20
while os.sched_getaffinity(0) != {min(os.sched_getaffinity(0))} and time.monotonic() < end:
    time.sleep(0.01)
print(os.sched_getscheduler(0) == os.SCHED_IDLE, os.nice(0), sorted(os.sched_getaffinity(0)))
"""


def plan(cpus: tuple[int, ...]) -> str:
    """A plan whose monitor is bound to these CPUs."""
    monitor = MonitorPlan(host="local", interval_s=1.0, cpus=cpus, paused=False, during_trials="")
    return Plan(run_id="one", title="", nicbench_version="", seed=1, monitors=(monitor,)).model_dump_json()


def test_the_server_has_the_lowest_priority_and_keeps_off_the_cpus_that_measure(runs: Path) -> None:
    folder = make_run(runs, "one", started())
    assert free_cpus(folder) == frozenset()
    first = min(os.sched_getaffinity(0))
    (folder / "plan.json").write_text(plan((first, 100_000)))
    assert free_cpus(folder) == {first, 100_000}
    done = run_captured([sys.executable, "-c", ASIDE, str(folder)])
    assert done.stdout.split(maxsplit=2) == ["True", "19", f"[{first}]\n"]


def test_what_the_server_cost_is_noted_before_the_run_ends() -> None:
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        while (cpu_time_s(process.pid) or 0.0) < 0.05:
            time.sleep(0.01)
        bus, told = Bus(), list[Event]()
        bus.subscribe(LivePage(process, "http://127.0.0.1:1/").subscriber(bus))
        bus.subscribe(told.append)
        bus.publish(RunFinished(verdict=ResultVerdict.VALID))
    finally:
        process.kill()
        process.wait()
    note, last = told
    assert isinstance(note, Note)
    assert "its server used" in note.text
    assert isinstance(last, RunFinished)
    assert cpu_time_s(process.pid) is None


def test_a_server_that_cannot_start_costs_a_run_its_page_and_no_more(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = RunFolder(make_run(runs, "one", started()))
    monkeypatch.setattr(sys, "executable", "/bin/false")
    said = []
    with live_page(folder, said.append) as page:
        assert page is None
    assert said == ["warning: the live page could not be served; the run goes on without it"]


def test_a_page_is_served_while_the_run_goes_on_and_ends_with_it(runs: Path) -> None:
    folder = RunFolder(make_run(runs, "one", started()))
    said = []
    with live_page(folder, said.append) as page:
        assert said == [f"live page: {page.address}runs/one"]
        process = page._process
        assert process.poll() is None
        assert os.sched_getscheduler(process.pid) == os.SCHED_IDLE
        _raise_priority(process.pid)  # as at the end of a run, for the last words
        assert os.sched_getscheduler(process.pid) == os.SCHED_OTHER
    assert process.poll() == 0


def test_a_request_to_stop_ends_the_run_once(runs: Path) -> None:
    folder = make_run(runs, "one", started())
    end_where_asked(folder, "test b")
    ask_to_stop(folder)
    ask_to_stop(folder)
    with pytest.raises(InterruptedRunError, match="stopped before test b"):
        end_where_asked(folder, "test b")
    end_where_asked(folder, "test c")
    forget_request(folder)
    outside = runs.parent / "outside"
    (folder / ".stop-after-test").symlink_to(outside)
    with pytest.raises(Exception, match="cannot be read or written"):
        ask_to_stop(folder)
    assert not outside.exists()


def test_a_plan_that_no_run_wrote_leaves_the_server_where_it_is(runs: Path) -> None:
    folder = make_run(runs, "one", started())
    (folder / "plan.json").write_text(json.dumps({"monitors": "all"}))
    with pytest.raises(Exception, match="is damaged"):
        free_cpus(folder)


VENDOR = STATIC / "vendor"
KNOWN = json.loads((VENDOR / "packages.json").read_text())["packages"]


def test_every_file_of_others_is_the_one_of_the_archive_that_npm_vouches_for() -> None:
    for package in KNOWN:
        folder = VENDOR / package["folder"]
        assert package["integrity"].startswith("sha512-")
        for name, wanted in package["files"].items():
            found = hashlib.sha512((folder / name).read_bytes()).digest()
            assert f"sha512-{base64.b64encode(found).decode()}" == wanted
        assert {path.name for path in folder.iterdir()} == {*package["files"], "README.md"}


def test_no_file_of_others_lies_elsewhere() -> None:
    minified = [path for path in STATIC.rglob("*") if ".min." in path.name]
    assert {path.relative_to(VENDOR).parts[0] for path in minified} == {package["folder"] for package in KNOWN}


def test_the_list_of_materials_has_them_with_their_licences() -> None:
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "packaging"))
    from materials import scripts

    (uplot,) = scripts(VENDOR)
    assert uplot.component()["purl"] == f"pkg:npm/uplot@{KNOWN[0]['version']}"
    assert "Permission is hereby granted" in uplot.texts[0]


def test_the_pages_load_nothing_from_elsewhere() -> None:
    own = [path for path in STATIC.rglob("*") if path.is_file() and VENDOR not in path.parents]
    told = [(path.name, line) for path in own for line in path.read_text().splitlines() if "//" in line]
    assert not [each for each in told if "http" in each[1] and "www.w3.org" not in each[1]]


def test_no_script_makes_markup_of_text() -> None:
    dangerous = ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "srcdoc")
    own = [path for path in STATIC.rglob("*.js") if VENDOR not in path.parents]
    assert len(own) > 5
    assert not [(path.name, word) for path in own for word in dangerous if word in path.read_text()]
