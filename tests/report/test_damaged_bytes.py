"""Run folders damaged at random: cut, flipped, mixed with another run's; no command ends otherwise than documented."""

from __future__ import annotations

import random
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nicbench.cli.main import main
from nicbench.core.result import ResultVerdict
from nicbench.store import manifest

from ._synthetic import SyntheticRun

GOOD = "2026-01-02T000000Z-good"
BAD = "2026-01-01T000000Z-bad"
COMMANDS = (
    ("list",),
    ("report", BAD),
    ("report", BAD, "--damaged"),
    ("check", BAD, "--against", GOOD),
    ("diff", GOOD, BAD),
    ("tag", BAD, "seen"),
)
EXPORTS = ("badge", "csv", "json", "junit", "openmetrics", "parquet", "xlsx")
STRANGE = (b"NaN", b"-1", b"1e400", b"1" + b"0" * 30, b"null", b"[]", b'""', b"\x00", b"\xff\xfe", b"{", b"}", b"\n")


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two good runs of different sizes."""
    folders = []
    for sizes in ((64,), (64, 512)):
        run = SyntheticRun(tmp_path_factory.mktemp("good")).start()
        run.measure(sizes)
        folders.append(run.finish(ResultVerdict.VALID))
    return folders[0], folders[1]


def _cut(content: bytes, _: bytes, dice: random.Random) -> bytes:
    return content[: dice.randrange(len(content))]


def _flipped(content: bytes, _: bytes, dice: random.Random) -> bytes:
    found = bytearray(content)
    for _each in range(dice.randint(1, 8)):
        found[dice.randrange(len(found))] ^= 1 << dice.randrange(8)
    return bytes(found)


def _mixed(content: bytes, other: bytes, dice: random.Random) -> bytes:
    begin = dice.randrange(len(content))
    return content[:begin] + other[begin : begin + dice.randrange(4096)] + content[begin + 1 :]


def _strange_value(content: bytes, _: bytes, dice: random.Random) -> bytes:
    places = [at + 1 for at, byte in enumerate(content) if byte in b":,["]
    begin = dice.choice(places or [0])
    end = begin + 1
    while end < len(content) and content[end] not in b",}]\n":
        end += 1
    return content[:begin] + dice.choice(STRANGE) + content[end:]


def _doubled(content: bytes, _: bytes, dice: random.Random) -> bytes:
    begin = dice.randrange(len(content))
    return content[:begin] + content[begin : begin + dice.randrange(4096)] * 2 + content[begin:]


def _of_the_other(_: bytes, other: bytes, __: random.Random) -> bytes:
    return other


HARMS: tuple[Callable[[bytes, bytes, random.Random], bytes], ...] = (
    _cut, _flipped, _mixed, _strange_value, _strange_value, _strange_value, _doubled, _of_the_other,
)  # fmt: skip


def harmed(folder: Path, other: Path, dice: random.Random) -> str:
    """Changes one file, and says which and how."""
    names = sorted(path.name for path in folder.iterdir() if path.is_file() and path.stat().st_size)
    name = dice.choice(names)
    harm = dice.choice(HARMS)
    before = (folder / name).read_bytes()
    theirs = (other / name).read_bytes() if (other / name).is_file() else b""
    (folder / name).write_bytes(harm(before, theirs, dice))
    return "" if (folder / name).read_bytes() == before else f"{harm.__name__} {name}"


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
    harm: Callable[[bytes], bytes], two: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = Path(shutil.copytree(two[0], tmp_path / "runs" / GOOD))
    written = (folder / manifest.NAME).read_bytes()
    (folder / manifest.NAME).write_bytes(harm(written))
    assert harm(written) != written
    assert main(["report", GOOD, "--output", str(tmp_path / "runs")]) == 4
    assert f"{manifest.NAME}: is damaged: was changed after the run had finished" in capsys.readouterr().err


@pytest.mark.parametrize("signed", [False, True], ids=["as found", "with a manifest of its own"])
@pytest.mark.parametrize("times", [2, pytest.param(30, marks=pytest.mark.acceptance)])
def test_every_command_ends_as_documented(
    times: int,
    signed: bool,
    two: tuple[Path, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    draw: random.Random,
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(two[0], tmp_path / "runs" / GOOD)
    for _ in range(times):
        shutil.rmtree(tmp_path / "runs" / BAD, ignore_errors=True)
        shutil.copytree(two[1], tmp_path / "runs" / BAD)
        told = harmed(tmp_path / "runs" / BAD, two[0], draw)
        if signed:
            (tmp_path / "runs" / BAD / manifest.NAME).unlink(missing_ok=True)
            if draw.random() < 0.7:
                manifest.write(tmp_path / "runs" / BAD)
        exports = draw.choice(EXPORTS)
        for command in (*COMMANDS, ("export", BAD, "--to", exports, "--output", f"out.{exports}")):
            _ends(capsys, told, command, quarantined=bool(told) and not signed)


def _ends(capsys: Any, told: str, command: tuple[str, ...], *, quarantined: bool) -> None:
    capsys.readouterr()
    words = command if command[0] == "export" else (*command, "--output", "runs")
    status = main([*words])
    err = capsys.readouterr().err
    assert "nicbench failed" not in err, (told, command, err)
    assert "Traceback" not in err, (told, command, err)
    shown = not told.endswith((".hlog", "trials.parquet", "rounds.parquet"))
    if quarantined and shown and command[0] != "list" and "--damaged" not in command:
        assert status in (2, 4), (told, command, status)
        assert "next:" in err, (told, command, err)
