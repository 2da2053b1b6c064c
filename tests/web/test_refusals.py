"""What the server refuses: other names, other origins, other folders, large bodies, and others without the password."""

from __future__ import annotations

import base64
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from urllib.parse import quote

import pytest
from tests.web._folders import HOSTILE, finished, make_run, started, trials
from tests.web._history import FIRST, facts, make_finished, result
from tests.web.conftest import ADDRESS, Client

from nicbench.core.errors import UsageError
from nicbench.core.result import ResultVerdict
from nicbench.web.catalogue import Catalogue
from nicbench.web.security import POLICY, Door
from nicbench.web.serving import Place
from nicbench.web.site import Site


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:8425", 200),
        ("localhost:8425", 200),
        ("[::1]:8425", 200),
        ("evil.example:8425", 421),
        ("127.0.0.1:80", 421),
        ("127.0.0.1", 421),
        ("127.0.0.1:8425.evil.example", 421),
        ("", 421),
    ],
)
def test_a_name_that_was_made_to_lead_here_is_refused(host: str, status: int, client: Client) -> None:
    assert client.get("/", headers={"Host": host}).status_code == status


@pytest.mark.parametrize(
    "changed",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": ""},
        {"Origin": "http://localhost:8425"},
        {"X-Nicbench-Token": "wrong"},
        {"X-Nicbench-Token": ""},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
    ids=str,
)
def test_no_other_page_can_stop_a_run(changed: dict[str, str], client: Client, site: Site, runs: Path) -> None:
    folder = make_run(runs, "one", started() + trials(1))
    headers = {"Origin": ADDRESS, "X-Nicbench-Token": site.door.token} | changed
    for path in ("/api/runs/one/stop", "/api/runs/one/stop-after-test"):
        assert client.post(path, json={}, headers=headers).status_code == 403
    assert not (folder / ".stop-after-test").exists()


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"X-Nicbench-Token": "of an earlier server"}, 200),
        ({"X-Nicbench-Token": "", "Sec-Fetch-Site": "same-origin"}, 200),
        ({}, 403),
        ({"X-Nicbench-Token": "", "Sec-Fetch-Site": "cross-site"}, 403),
        ({"X-Nicbench-Token": "", "Sec-Fetch-Site": "same-site"}, 403),
        ({"X-Nicbench-Token": "", "Sec-Fetch-Site": "none"}, 403),
        ({"X-Nicbench-Token": "", "Host": "evil.example:8425"}, 421),
    ],
    ids=str,
)
def test_only_a_page_of_this_origin_is_given_the_token(
    headers: dict[str, str], status: int, client: Client, site: Site
) -> None:
    answer = client.get("/api/token", headers=headers)
    assert answer.status_code == status
    assert (site.door.token in answer.text) == (status == 200)
    assert not [name for name in answer.headers if name.startswith("access-control")]
    assert client.ask("OPTIONS", "/api/token", headers=headers | {"Origin": "http://evil.example"}).status_code >= 400


def test_a_large_body_or_one_of_unknown_length_is_refused(client: Client, site: Site) -> None:
    headers = {"Origin": ADDRESS, "X-Nicbench-Token": site.door.token}
    assert client.post("/api/runs/one/stop", content=b"x" * 5000, headers=headers).status_code == 413
    assert client.post("/api/runs/one/stop", content=_unknown_length(), headers=headers).status_code == 413


async def _unknown_length() -> AsyncIterator[bytes]:
    yield b"x"


@pytest.mark.parametrize("path", ["/", "/api/runs", "/nothing", "/static/web.css", "/runs/one", "/api/runs?sort=x"])
def test_every_answer_has_the_policy_and_allows_no_other_origin(path: str, client: Client, runs: Path) -> None:
    make_run(runs, "one", started())
    answer = client.get(path, headers={"Origin": "http://evil.example"})
    assert answer.headers["content-security-policy"] == POLICY
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["cross-origin-resource-policy"] == "same-origin"
    assert not [name for name in answer.headers if name.startswith("access-control")]


def test_a_report_is_in_nobodys_origin(client: Client, runs: Path) -> None:
    folder = make_run(runs, "one", started() + finished())
    (folder / "report.html").write_text("<script>parent.postMessage(1)</script>")
    policy = client.get("/runs/one/report.html").headers["content-security-policy"]
    assert policy.startswith("sandbox ")
    assert "allow-same-origin" not in policy
    assert "connect-src" not in policy
    assert "default-src 'none'" in policy


@pytest.mark.parametrize(
    "path",
    [
        "/runs/..%2fsecret/secret.txt",
        "/runs/%2e%2e/secret.txt",
        "/runs/one/%2e%2e/%2e%2e/secret.txt",
        "/runs/one/..%2f..%2fsecret.txt",
        "/runs/one/linked.txt",
        "/runs/one/raw/linked.txt",
        "/runs/one/linked-folder/secret.txt",
        "/runs/linked-run/bench.yaml",
        "/runs/one/.hidden",
        "/runs/one/undo.json",
        "/runs/one/undo.json/",
        "/runs/one/%2e/undo.json",
        "/runs/one/%2e%2fundo.json",
        "/runs/one/%2fetc/passwd",
        "/runs/one/pipe",
        "/runs/one/raw",
        "/runs/one/a%00b",
        "/runs/.index.sqlite/x",
        "/static/../app.py",
        "/static/%2e%2e/app.py",
    ],
)
def test_nothing_outside_of_a_run_folder_is_sent(path: str, client: Client, runs: Path) -> None:
    secret = runs.parent / "secret.txt"
    secret.write_text("SECRET")
    folder = make_run(runs, "one", started())
    elsewhere = make_run(runs.parent / "other", "run", "SECRET", bench="SECRET")
    (folder / "raw").mkdir()
    (folder / "linked.txt").symlink_to(secret)
    (folder / "raw" / "linked.txt").symlink_to(secret)
    (folder / "linked-folder").symlink_to(runs.parent)
    (folder / ".hidden").write_text("SECRET")
    (folder / "undo.json").write_text("SECRET")
    os.mkfifo(folder / "pipe")
    (runs / "linked-run").symlink_to(elsewhere)
    answer = client.get(path)
    assert answer.status_code in (403, 404, 500)
    assert "SECRET" not in answer.text
    assert "import" not in answer.text


PAGE = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


@pytest.mark.parametrize("path", ["/nowhere", "/runs/none", "/compare?run=one", f"/runs/{quote(HOSTILE, safe='')}"])
def test_who_opens_an_address_that_has_nothing_sees_a_page_with_the_reason_and_a_way_back(
    path: str, client: Client, runs: Path
) -> None:
    make_run(runs, "one", started())
    answer = client.get(path, headers=PAGE)
    assert answer.status_code == 404
    assert answer.headers["content-type"].startswith("text/html")
    assert "<h1>This cannot be shown</h1>" in answer.text
    assert '<a href="/">All runs</a>' in answer.text
    assert "<img" not in answer.text
    assert client.get(path).json()["error"], "programs are answered in JSON"


def test_runs_that_are_not_comparable_are_refused_on_a_page_with_every_reason(client: Client, runs: Path) -> None:
    values = {"ndr_frames_per_s": 1e6}
    for name, scope in (("one", "per port"), ("two", "sum of 2 ports")):
        found = [result("throughput", 64, values, ResultVerdict.VALID).replace(scope=scope)]
        make_finished(runs, name, FIRST, name.title(), found, facts("25G", 1))
    answer = client.get("/compare?run=one&run=two", headers=PAGE)
    assert "<li>rates of “throughput” are not on the same basis: per port (“One”); sum of 2 ports (“Two”)</li>" in (
        answer.text
    )
    assert "<code>nicbench compare one two --force</code> compares them all the same" in answer.text
    assert "<code>nicbench compare one two --per-port</code> then divides the sum" in answer.text


def test_files_of_a_run_come_as_files_to_keep(client: Client, runs: Path) -> None:
    folder = make_run(runs, "one", started())
    (folder / "page.html").write_text("<script>alert(1)</script>")
    answer = client.get("/runs/one/page.html")
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["content-disposition"] == "attachment"
    assert answer.text == "<script>alert(1)</script>"


def test_names_and_titles_of_strangers_are_only_text(client: Client, runs: Path) -> None:
    name = HOSTILE.replace("/", "")
    make_run(runs, name, started(HOSTILE) + finished())
    page = client.get(f"/runs/{name}")
    assert page.status_code == 200
    assert "<img" not in page.text
    assert "<script>window" not in page.text
    assert "\u202e" not in page.text + client.get("/api/runs").text
    assert client.get("/api/runs").headers["content-type"] == "application/json"


def test_others_need_the_password(runs: Path) -> None:
    door = Door.of(("bench.example",), 443, tls=True, password="correct horse battery")
    site = Site(runs, Catalogue(lambda: pytest.fail("was read")), door)
    client = Client(site, "https://bench.example")
    assert client.get("/").headers["www-authenticate"].startswith("Basic")
    for given, status in (("wrong", 401), ("correct horse battery", 200)):
        word = base64.b64encode(f"anybody:{given}".encode()).decode()
        assert client.get("/", headers={"Authorization": f"Basic {word}"}).status_code == status
    assert client.get("/", headers={"Authorization": "Basic !!!"}).status_code == 401


def test_another_address_needs_a_certificate_and_a_password(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--tls-cert and --password-file must be given"):
        Place(host="192.0.2.1").check()
    with pytest.raises(UsageError, match="belong together"):
        Place(tls_cert=tmp_path / "cert.pem").check()
    word = tmp_path / "password"
    word.write_text("a long password\n")
    word.chmod(0o644)
    whole = Place(host="0.0.0.0", tls_cert=tmp_path / "c", tls_key=tmp_path / "k", password_file=word)
    with pytest.raises(UsageError, match="others may read"):
        whole.check()
    word.chmod(0o600)
    assert whole.check() == "a long password"
    word.write_text("short")
    with pytest.raises(UsageError, match="at least 12"):
        whole.check()


def test_only_a_run_that_is_conducted_here_can_be_stopped(post: Callable[[str], int], runs: Path) -> None:
    folder = make_run(runs, "one", started() + trials(1))
    assert post("/api/runs/one/stop") == 409
    assert post("/api/runs/one/stop-after-test") == 409
    assert post("/api/runs/nothing/stop") == 409
    assert not (folder / ".stop-after-test").exists()
