"""Root's commands that read what others wrote are an ordinary user's, reach what they name, and still do their work."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.commands import run_tried

from nicbench.cli.confining import fence_of
from nicbench.store import landlock
from nicbench.store.confined import run_confined
from nicbench.store.folder import RunFolder
from nicbench.web import controller

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root has rights to give up")
with_landlock = pytest.mark.skipif(landlock.landlock_version() == 0, reason="needs a kernel with Landlock")

TRIED = """
import json, os, sys
from pathlib import Path
from nicbench.cli.confining import confine
from nicbench.store import files

def tried(what):
    try:
        what()
    except OSError:
        return False
    return True

for words in json.loads(sys.argv[1]):
    status = confine(words)
    if status is None:
        break
    if status:
        sys.exit(status)
else:
    sys.exit()
runs = Path("runs")
[run, *_] = sorted(runs.iterdir())
print(json.dumps({
    "user": os.geteuid(),
    "reads the run": tried((run / "journal.ndjson").read_bytes),
    "reads a secret": tried(Path("secret").read_text),
    "reads of root": tried(Path("/etc/shadow").read_text),
    "writes": tried(lambda: (run / "journal.ndjson").write_text("")) or tried(lambda: Path("new").write_text("")),
    "asks to write": [
        each for each in (str(run / "journal.ndjson"), str(run / "x.py"), "secret", "new", ".bashrc", "/etc/passwd")
        if tried(lambda: files.hands().remove(Path(each)))
    ],
    "signals": tried(lambda: os.kill(os.getppid(), 0)),
}))
"""


def of_root(tmp_path: Path, lines: list[list[str]]) -> list[dict[str, Any]]:
    """Gives command lines, each up to where its own work would begin, and says what it then could do."""
    ended = run_tried([sys.executable, "-c", TRIED, json.dumps(lines)], cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    return [json.loads(line) for line in ended.stdout.splitlines()]


@pytest.fixture
def of_roots_own(tmp_path: Path, nicbench: Any, run_is: Any, finished_run: Any) -> Path:
    """A run, and a secret beside it, which only root may read."""
    run_is(finished_run)
    assert nicbench("run", "bench.yaml", "--no-report").status == 0
    (tmp_path / "secret").write_text("of root")
    for path in tmp_path.rglob("*"):
        path.chmod(0o700 if path.is_dir() else 0o600)
    [run] = (tmp_path / "runs").iterdir()
    return run


@with_landlock
def test_a_command_that_reads_gives_up_the_rights_of_root(of_roots_own: Path, tmp_path: Path) -> None:
    lines = """
    report RUN
    report latest --out elsewhere
    export RUN --to json
    compare a=RUN RUN:default
    check RUN --against latest
    diff RUN RUN
    list
    tag RUN nightly
    web runs
    import bench.yaml
    gather runs
    gather runs --into elsewhere
    fleet gather runs --into elsewhere
    """
    run = str(of_roots_own)
    commands = [[word.replace("RUN", run) for word in line.split()] for line in lines.strip().splitlines()]
    found = of_root(tmp_path, commands)
    assert 0 not in {each.pop("user") for each in found}
    ordinary = {
        "reads the run": True,
        "reads a secret": False,
        "reads of root": False,
        "writes": False,
        "asks to write": [],
        "signals": False,
    }
    for words, each in zip(commands, found, strict=True):
        assert each == ordinary, words


@pytest.mark.parametrize("command", ["run", "resume", "lab", "tune", "restore", "serve", "demo", "doctor"])
def test_what_measures_makes_labs_and_tunes_keeps_its_rights(command: str) -> None:
    assert fence_of([command, "runs"]) is None


def nicbench_itself(*words: str, **more: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "nicbench", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, **more)


@pytest.mark.sampled(2)
@with_landlock
@pytest.mark.parametrize(
    ("words", "made"),
    [
        ("report RUN --format html,md", "RUN/report.html"),
        ("report RUN --out there/too", "there/too/report.html"),
        ("export RUN --to json --out out/x.json", "out/x.json"),
        ("tag RUN nightly", "RUN/tags.json"),
        ("list", "runs/.index.sqlite"),
    ],
)
def test_reports_exports_and_indexes_of_what_only_root_may_read_are_roots(
    words: str, made: str, of_roots_own: Path, tmp_path: Path
) -> None:
    run = str(of_roots_own)
    ended = nicbench_itself(*words.replace("RUN", run).split(), cwd=tmp_path)
    assert (ended.returncode, ended.stderr) == (0, ""), ended.stderr
    status = (tmp_path / made.replace("RUN", run)).stat()
    assert (status.st_uid, status.st_size > 0) == (0, True)


@pytest.mark.sampled(1)
@with_landlock
@pytest.mark.parametrize("into", ["", "there/lake", "file://{here}/a%20lake"])
def test_a_lake_of_what_only_root_may_read_is_roots_and_is_gathered_again(
    into: str, of_roots_own: Path, tmp_path: Path
) -> None:
    words = ["gather", "runs", *(["--into", into.format(here=tmp_path)] if into else [])]
    lake = tmp_path / {"": "runs/lake", "there/lake": "there/lake"}.get(into, "a lake")
    assert nicbench_itself(*words, cwd=tmp_path).stdout.startswith("1 runs added")
    left = lake / ".lake.json.123.tmp"
    left.touch()
    again = nicbench_itself(*words, cwd=tmp_path)
    assert (again.returncode, again.stderr) == (0, "")
    assert again.stdout.startswith("0 runs added, 0 updated, 1 known")
    assert not left.exists()
    assert {path.stat().st_uid for path in lake.rglob("*")} == {0}
    assert nicbench_itself("list", "--lake", str(lake), cwd=tmp_path).returncode == 0


@with_landlock
def test_a_fleet_that_only_root_may_read_is_gathered(of_roots_own: Path, tmp_path: Path) -> None:
    (tmp_path / "night").mkdir(mode=0o700)
    (tmp_path / "night" / "manifest.json").write_text("{}")
    (tmp_path / "runs").rename(tmp_path / "night" / "runs")
    ended = nicbench_itself("fleet", "gather", "night", "--into", "lake", cwd=tmp_path)
    assert (ended.returncode, ended.stderr, ended.stdout[:12]) == (0, "", "1 runs added")
    assert {path.stat().st_uid for path in (tmp_path / "lake").rglob("*")} == {0}


@with_landlock
@pytest.mark.parametrize("words", [["gather", "missing"], ["gather", "RUN"]], ids=" ".join)
def test_a_lake_that_is_not_made_leaves_no_folder(words: list[str], of_roots_own: Path, tmp_path: Path) -> None:
    ended = nicbench_itself(*(word.replace("RUN", str(of_roots_own)) for word in words), cwd=tmp_path)
    assert ended.returncode == 2
    assert not list(tmp_path.rglob("lake"))


def test_without_landlock_a_program_that_only_root_may_read_is_refused_with_what_to_do(
    of_roots_own: Path, tmp_path: Path
) -> None:
    script = (
        "import sys, os\n"
        "from nicbench.store import confined, landlock\n"
        "from nicbench.cli.main import main\n"
        "landlock.landlock_version = lambda: 0\n"
        "os.access = lambda *_, **__: False\n"
        f"sys.argv[1:] = ['list', '--runs', {str(of_roots_own.parent)!r}]\n"
        "sys.exit(main())\n"
    )
    ended = run_tried([sys.executable, "-c", script])
    assert ended.returncode == 3
    assert "not readable for an ordinary user" in ended.stderr
    assert "next: call it as an ordinary user" in ended.stderr


@with_landlock
def test_an_import_writes_its_run_and_its_report_and_nothing_else(tmp_path: Path) -> None:
    example = Path(__file__).parents[2] / "examples/published-zero-loss.csv"
    (tmp_path / "given.csv").write_bytes(example.read_bytes())
    tmp_path.chmod(0o700)
    words = ("--method", "throughput", "--column", "Ports=link", "--configuration", "NIC")
    ended = nicbench_itself("import", "given.csv", *words, cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    [run] = (tmp_path / "runs").iterdir()
    assert {"import.json", "journal.ndjson", "summary.json", "report.html", "raw"} <= {
        each.name for each in run.iterdir()
    }
    assert {each.name for each in tmp_path.iterdir()} == {"given.csv", "runs"}

    assert (
        nicbench_itself("import", "given.csv", "--method", "latency", "--runs", "other", cwd=tmp_path).returncode == 2
    )
    assert not list((tmp_path / "other").iterdir())


def test_the_server_of_pages_stops_a_run_by_its_clerk(of_roots_own: Path) -> None:
    folder = RunFolder.open(of_roots_own)
    folder.journal.hold()
    heard = []
    before = signal.signal(signal.SIGTERM, lambda number, _: heard.append(number))
    fence = fence_of(["web", str(of_roots_own.parent)])
    assert fence is not None

    def work() -> tuple[int, bool]:
        writer = controller.find_writer(of_roots_own)
        controller.stop_after_test(of_roots_own)
        controller.stop_now(of_roots_own)
        return writer.pid, writer.is_ours

    try:
        ended = run_confined(work, fence)
    finally:
        signal.signal(signal.SIGTERM, before)
        folder.journal.close()
    assert (ended.answer, ended.error) == ([os.getpid(), True], None)
    assert heard == [signal.SIGTERM]
    assert (of_roots_own / ".stop-after-test").stat().st_uid == 0


def test_the_clerk_stops_no_run_that_is_elsewhere(of_roots_own: Path, tmp_path: Path) -> None:
    other = tmp_path / "other" / of_roots_own.name
    other.parent.mkdir()
    of_roots_own.rename(other)
    fence = fence_of(["web", str(of_roots_own.parent)])
    assert fence is not None
    ended = run_confined(lambda: controller.stop_after_test(other), fence)
    assert ended.error is not None
    assert not (other / ".stop-after-test").exists()


@with_landlock
def test_root_of_a_container_that_has_no_other_users_still_has_its_reports(of_roots_own: Path, tmp_path: Path) -> None:
    alone = ("unshare", "--user", "--map-root-user")
    if run_tried([*alone, "true"]).returncode:
        pytest.skip("this kernel gives no user namespaces")
    command = [*alone, sys.executable, "-m", "nicbench", "report", str(of_roots_own), "--format", "md"]
    ended = run_tried(command, cwd=tmp_path)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert (of_roots_own / "report.md").is_file()
