"""The frames start where there is nothing but a directory: no library, no /proc, no /sys."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.commands import run_tried

from nicbench.engine.binaries import find_binary

NAME = "nicbench-frames"


@pytest.mark.lab
def test_frames_are_written_and_read_in_an_empty_root(tmp_path: Path) -> None:
    program = tmp_path / NAME
    program.write_bytes(find_binary(NAME).read_bytes())
    program.chmod(0o755)
    (tmp_path / "frames").mkdir()
    for task, options in (("write", ("--frame-size", "1m", "--frames", "3")), ("read", ("--verify", "full"))):
        done = run_tried(["chroot", str(tmp_path), f"/{NAME}", task, "/frames", *options, "--json"], timeout=60)
        assert done.returncode == 0, done.stderr
        result = json.loads(done.stdout)
        assert (result["frames"], result["bytes"], result["ended_by"]) == (3, 3 << 20, "frames")
    hello = run_tried(
        ["chroot", str(tmp_path), f"/{NAME}"], input='{"id": 1, "command": "hello", "protocol": "1.3"}\n', timeout=60
    )
    assert json.loads(hello.stdout.splitlines()[1])["is_static"]
