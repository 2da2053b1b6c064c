"""Wrong shares of a file server: where the error points, what it says, and what to do."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from nicbench.bench_file import BenchFile, WrongBenchFileError

Read = Callable[[str], BenchFile]

REST = "tests: [{name: t, method: frames}]\n"
HEAD = "nicbench: 1\ntitle: x\nlab: {kind: clients}\ndut:\n  kind: file-server\n"

WRONG: dict[str, tuple[str, int, int, str, str]] = {
    "no kind of share": ("  memory: 1 GiB\n", 5, 3, "`dut.share` is missing", "add `share: sftp`"),
    "a kind that there is not": (
        "  share: sfpt\n  memory: 1 GiB\n",
        *(6, 10, "there is no dut.share of the kind `sfpt`", "did you mean `sftp`?"),
    ),
    "an option that the kind has not": (
        "  share: {kind: sftp, first-port: 7}\n  memory: 1 GiB\n",
        *(6, 23, "unknown key `dut.share.first-port`", "did you mean `first_port`?"),
    ),
    "an option that sshfs would read as two": (
        '  share: {kind: sftp, options: ["a,b"]}\n  memory: 1 GiB\n',
        *(6, 33, "`dut.share.options[0]` cannot be `a,b`", ""),
    ),
    "neither memory nor a folder": ("  share: sftp\n", 5, 3, "give either `folder` (/stor/d{share}) or `memory`", ""),
    "both": ('  share: sftp\n  memory: 1 GiB\n  folder: "/stor/d{share}"\n', 5, 3, "give either `folder`", ""),
    "one folder for two shares": (
        "  share: sftp\n  shares: 2\n  folder: /stor/d1\n",
        *(5, 3, "2 shares need folders of their own: write {share} in `folder`", ""),
    ),
    "a folder that is not whole": (
        "  share: sftp\n  folder: stor/d1\n",
        *(7, 11, "`dut.folder`: write the whole path of the folder", ""),
    ),
    "a folder that climbs": ("  share: sftp\n  folder: /stor/../etc\n", 7, 11, "the whole path of the folder", ""),
    "a folder that a server would not take": (
        '  share: sftp\n  folder: "/stor/a b"\n',
        *(7, 11, "write a folder without", ""),
    ),
    "memory without a unit": ("  share: sftp\n  memory: 100\n", 7, 11, "`dut.memory`: 100 has no unit", "write a size"),
    "no share": ("  share: sftp\n  shares: 0\n  memory: 1 GiB\n", 7, 11, "it must be at least 1", ""),
}


@pytest.mark.parametrize("name", WRONG)
def test_the_error_points_at_the_place_and_names_the_next_step(name: str, read: Read) -> None:
    text, line, column, message, next_step = WRONG[name]
    with pytest.raises(WrongBenchFileError) as told:
        read(HEAD + text + REST)
    problem = told.value.problems[0]
    assert message in problem.message
    assert (problem.position.line, problem.position.column) == (line, column)
    assert next_step in (problem.next_step or "")


def test_a_lab_whose_namespaces_are_reached_by_ssh_keeps_no_mounts(read: Read) -> None:
    with pytest.raises(WrongBenchFileError, match="reached by `ssh`"):
        read(HEAD.replace("clients}", "clients, reached_by: ssh}") + "  share: sftp\n  memory: 1 GiB\n" + REST)


def test_folders_of_the_user_and_memory_are_both_valid(read: Read) -> None:
    for where in ("memory: 1 GiB\n  shares: 12", 'folder: "/stor/d{share}"\n  shares: 12'):
        bench = read(f"{HEAD}  share: sftp\n  {where}\n{REST}")
        assert bench.dut.kind == "file-server"
