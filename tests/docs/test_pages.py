"""What the pages show works: bench files validate, commands run in a folder of their own, and print what is shown.

A block ``console`` is run: each line that begins with ``$ `` is a command, the lines below it are among what it prints.
Other blocks are read: their commands and options exist. A block after "Save this as `NAME`" is saved under that name.
"""

from __future__ import annotations

import functools
import re
import shlex
import sys
from pathlib import Path

import pytest

from nicbench.bench_file.load import parse
from nicbench.cli.main import main

from ._pages import PAGES, ROOT, blocks_of, whole_bench_files

sys.path.insert(0, str(ROOT / "docs/site"))
from nicbench_docs.commands import commands, options_of

NAMES = [str(page.relative_to(ROOT)) for page in PAGES]


@functools.cache
def known_options() -> dict[str, set[str]]:
    return {
        name: {word for cell, _ in options_of(name) for word in re.findall(r"--?[a-z][\w-]*", cell)}
        for name in commands()
    }


@pytest.mark.parametrize("page", NAMES)
def test_every_bench_file_of_a_page_validates(page: str) -> None:
    for block in blocks_of(ROOT / page):
        if block.language == "yaml":
            for text in whole_bench_files(block):
                assert parse(text.encode(), Path(page)).tests, block.place


@pytest.mark.parametrize(
    "page", [name for name in NAMES if any(block.language == "console" for block in blocks_of(ROOT / name))]
)
def test_every_command_that_a_page_shows_prints_what_it_shows(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    for block in blocks_of(ROOT / page):
        if block.saved_as is not None:
            Path(block.saved_as).write_text(block.text)
        if block.language != "console":
            continue
        for command, shown in block.commands():
            assert command[0] == "nicbench", f"{block.place} runs {command[0]}: take `sh` for what is not run here"
            assert main(command[1:]) == 0, block.place
            printed = {" ".join(line.split()) for line in capsys.readouterr().out.splitlines()}
            assert not [line for line in shown if " ".join(line.split()) not in printed], block.place


@pytest.mark.parametrize("page", NAMES)
def test_every_command_and_option_that_a_page_names_exists(page: str) -> None:
    wrong, known = [], known_options()
    for line in re.findall(r"^(?:\$ |    |)(?:sudo )?nicbench ([a-z].*)$", (ROOT / page).read_text(), re.MULTILINE):
        words = shlex.split(line, comments=True)
        name = " ".join(words[:2]) if " ".join(words[:2]) in known else words[0]
        given = {word.partition("=")[0] for word in words if re.match(r"--?[a-z]", word)}
        if name in known and "--" not in words and given - known[name] - {"-h", "--help"}:
            wrong.append(f"nicbench {line}: {sorted(given - known[name])}")
    assert not wrong
