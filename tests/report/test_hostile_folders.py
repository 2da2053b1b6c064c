"""Folders of damaged and of hostile runs: every command that reads runs says what is wrong and does no harm."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import html5lib
import pytest
from markdown_it import MarkdownIt

from nicbench.cli import running
from nicbench.cli.main import main
from nicbench.core.result import ResultVerdict
from nicbench.report import build
from nicbench.store import RunFolder, manifest

from ._hostile import CANARY, DAMAGED, FORGED, SECRET
from ._synthetic import SyntheticRun
from .test_html import TEXT

MOST_RESIDENT_KB = 1_500_000
MOST_MEMORY_BYTES = 3 * 2**30
LONGEST_S = 30
STATUSES = {0, 2, 3, 4, 5, 7}
STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")
GOOD = "2026-01-02T000000Z-good"
BAD = "2026-01-01T000000Z-bad"


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = SyntheticRun(tmp_path_factory.mktemp("good")).start()
    run.measure((64,))
    return run.finish(ResultVerdict.VALID)


@pytest.fixture
def runs(good: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of runs: a good one, and a copy of it that a case changes."""
    monkeypatch.setattr(running, "conduct", lambda *_, **__: None)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    for name in (GOOD, BAD):
        shutil.copytree(good, tmp_path / "runs" / name)
    (tmp_path / "outside.txt").write_text(SECRET)
    return tmp_path / "runs"


@contextlib.contextmanager
def bounded() -> Iterator[None]:
    """What takes too much CPU time or memory fails here, and not the machine."""
    limits = resource.getrlimit(resource.RLIMIT_DATA)
    now = int(Path("/proc/self/statm").read_text().split()[5]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_DATA, (now + MOST_MEMORY_BYTES, limits[1]))

    def too_long(*_: object) -> None:
        raise TimeoutError(f"it took more than {LONGEST_S} s of CPU time")

    before = signal.signal(signal.SIGPROF, too_long)
    signal.setitimer(signal.ITIMER_PROF, LONGEST_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
        resource.setrlimit(resource.RLIMIT_DATA, limits)


def ended(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """A command; whatever it was given, it ends as documented, in bounds, and steers no terminal."""
    capsys.readouterr()
    before = resident_kb()
    with bounded():
        status = main(arguments)
    told = capsys.readouterr()
    assert "nicbench failed" not in told.err
    assert "Traceback" not in told.err
    assert status in STATUSES
    assert not STEERING.search(told.out + told.err)
    assert SECRET not in told.out + told.err
    assert resident_kb() - before < MOST_RESIDENT_KB
    return status, told.out, told.err


def resident_kb() -> int:
    """The most that this process has had in memory."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def other_files(runs: Path) -> dict[str, bytes]:
    """All that no command may change."""
    every = [runs.parent / "outside.txt", *(runs / GOOD).rglob("*")]
    return {str(path): path.read_bytes() for path in every if path.is_file()}


def harmless(page: str) -> None:
    """As a browser reads it, the page runs nothing and leads nowhere."""
    assert SECRET not in page
    assert not STEERING.search(page)
    for element in html5lib.parse(page).iter():
        tag = str(element.tag).rpartition("}")[2]
        if tag == "script" and element.attrib == {"type": "module"}:  # ours alone: the policy names it by its content
            digest = base64.b64encode(hashlib.sha256((element.text or "").encode()).digest()).decode()
            assert f"sha256-{digest}" in page
            continue
        assert tag not in {"script", "iframe", "object", "embed", "img", "link", "base", "form", "foreignObject"}
        for name, value in element.attrib.items():
            plain = str(name).rpartition("}")[2].lower()
            assert not plain.startswith("on")
            assert plain not in {"src", "srcset", "action", "formaction", "data", "autofocus"}
            if plain == "href" and value.startswith(TEXT):  # a file that is saved, and never shown as a page
                assert "download" in element.attrib
                saved = base64.b64decode(value.removeprefix(TEXT)).decode()
                assert SECRET not in saved
                assert not STEERING.search(saved)
            elif plain == "href":
                assert value.startswith(("#", "./"))


def harmless_as_markdown(text: str) -> None:
    """As a reader of repositories shows it, it holds nothing that the report did not put there."""
    assert SECRET not in text
    page = MarkdownIt("commonmark", {"html": True}).enable("table").render(text)
    for element in html5lib.parse(page).iter():
        if not isinstance(element.tag, str):  # a comment
            continue
        tag = element.tag.rpartition("}")[2]
        assert tag not in {"script", "iframe", "object", "embed", "link", "base", "form", "svg", "style", "math"}
        assert not any(str(name).lower().startswith("on") for name in element.attrib)
        if tag == "img":
            assert element.attrib["src"].startswith("report-figures/figure-")
        assert not re.match(r"\s*[\w+.-]*:|//", element.attrib.get("href", ""))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("case", DAMAGED)
def test_a_damaged_run_is_in_quarantine_and_hides_no_other(
    case: str, runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (runs / BAD / "report.html").write_text("a report from better days")
    DAMAGED[case](runs / BAD, runs.parent / "outside.txt")
    before = other_files(runs)

    status, out, _ = ended(capsys, "list", "--json", "--output", str(runs))
    listed = {row["run_id"]: row for row in json.loads(out)["runs"]}
    assert status == 0
    assert listed[GOOD]["headline"]
    bad = listed[BAD]
    assert bad["trouble"]
    assert (bad["verdict"], bad["title"], bad["headline"], bad["results"]) == (None, None, None, 0)

    status, out, _ = ended(capsys, "list", "--output", str(runs))
    assert status == 0
    assert "damaged" in out

    for command in (("report", BAD), ("diff", BAD, GOOD), ("diff", GOOD, BAD), ("resume", BAD)):
        status, out, err = ended(capsys, *command, "--output", str(runs))
        assert status in (2, 4), command
        assert "next:" in err
    ended(capsys, "restore", BAD, "--output", str(runs))
    assert (runs / BAD / "report.html").read_text() == "a report from better days"

    status, _, err = ended(capsys, "report", BAD, "--damaged", "--output", str(runs))
    if status == 0:
        assert "warning:" in err
        page = (runs / BAD / "report.html").read_text()
        assert "not as the run left it" in page
        harmless(page)
    assert other_files(runs) == before


@pytest.mark.sampled(3)
@pytest.mark.parametrize("case", FORGED)
def test_a_forged_run_does_no_harm_in_any_output(case: str, runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    FORGED[case](runs / BAD, runs.parent / "outside.txt")
    before = other_files(runs)

    status, out, _ = ended(capsys, "list", "--json", "--output", str(runs))
    assert status == 0
    assert GOOD in {row["run_id"] for row in json.loads(out)["runs"]}
    status, out, _ = ended(capsys, "list", "--output", str(runs))
    assert status == 0
    lines = [line.lstrip("│ ") for line in out.splitlines()]
    assert sum(line.startswith(("2026-01-01T", "2026-01-02T")) for line in lines) == 2, out[:3000]
    for command in (("diff", BAD, GOOD), ("diff", GOOD, BAD, "--json"), ("resume", BAD), ("restore", BAD)):
        ended(capsys, *command, "--output", str(runs))
    formats = "all" if case.startswith("text") else "html"  # what is no text is the same in all of them
    status, _, err = ended(capsys, "report", BAD, "--format", formats, "--output", str(runs))
    if status == 0:
        harmless((runs / BAD / "report.html").read_text())
    else:
        assert "next:" in err
    if status == 0 and formats == "all":
        assert (runs / BAD / "report.pdf").read_bytes().startswith(b"%PDF")
        harmless_as_markdown((runs / BAD / "report.md").read_text())
    assert other_files(runs) == before


def test_a_name_of_a_folder_that_is_no_text_is_listed(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (runs / BAD).rename(os.fsdecode(os.fsencode(runs) + b"/2026-01-01T000000Z-\xff\x1b[31m"))

    for arguments in ((), ("--json",)):
        status, out, _ = ended(capsys, "list", "--output", str(runs), *arguments)
        assert status == 0
        assert GOOD in out


def test_nothing_is_written_through_a_link(runs: Path) -> None:
    outside = runs.parent / "outside.txt"
    (runs / BAD / "report.html").symlink_to(outside)
    (runs / BAD / f".report.html.{os.getpid()}.tmp").symlink_to(outside)

    build(runs / BAD)

    assert outside.read_text() == SECRET
    assert not (runs / BAD / "report.html").is_symlink()


def test_many_strange_files_are_told_in_few_words(runs: Path) -> None:
    for number in range(1000):
        (runs / BAD / f"{number:04}\x1b[31m\nx").symlink_to("/dev/zero")

    told = RunFolder.open(runs / BAD).differences()
    assert len(told) < 30
    assert not any(STEERING.search(sentence) or "\n" in sentence for sentence in told)


@pytest.mark.acceptance
def test_a_browser_runs_nothing_of_a_forged_run(runs: Path, tmp_path: Path) -> None:
    """Without the page's own rule against scripts, so that what was escaped is what is tested."""
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("no chromium")
    FORGED["text: html"](runs / BAD, runs.parent / "outside.txt")
    page = build(runs / BAD).read_text()
    rule = re.search(r'<meta http-equiv="Content-Security-Policy"[^>]*>', page)
    (tmp_path / "page.html").write_text(page.replace(rule[0], ""))
    with tempfile.TemporaryDirectory(dir="/tmp") as profile:  # it makes sockets in it, whose paths must be short
        command = [chromium, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}", "--dump-dom"]
        shown = subprocess.run(
            [*command, f"file://{tmp_path}/page.html"],
            env={**os.environ, "TMPDIR": profile},
            capture_output=True,
            timeout=60,
            check=True,
        )
    title = re.search(r"<title>(.*?)</title>", shown.stdout.decode(), re.DOTALL)
    assert title[1] != CANARY


@pytest.mark.parametrize(
    "harm",
    [
        lambda text: text.replace(b'"sha256": {', b'"sha256":  {'),
        lambda text: re.sub(rb'(\n  "bench.yaml": "[0-9a-f]+",)', rb"\1\1", text),
        lambda text: text + b"\n",
    ],
    ids=["another blank", "a key twice", "another line"],
)
def test_a_manifest_that_says_the_same_in_other_bytes_was_changed(
    harm: Callable[[bytes], bytes], good: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = Path(shutil.copytree(good, tmp_path / "runs" / GOOD))
    written = (folder / manifest.NAME).read_bytes()
    (folder / manifest.NAME).write_bytes(harm(written))
    assert harm(written) != written
    assert main(["report", GOOD, "--output", str(tmp_path / "runs")]) == 4
    assert f"{manifest.NAME}: is damaged: was changed after the run had finished" in capsys.readouterr().err
