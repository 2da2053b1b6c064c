"""The monitor starts where there is nothing but the kernel: in an empty root with /proc and /sys."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.commands import run_tried

from nicbench.engine.binaries import find_binary
from nicbench.monitor.running import NAME

REQUESTS = (
    {"id": 1, "command": "hello", "protocol": "1.2"},
    {"id": 2, "command": "configure", "processes": [1]},
    {"id": 3, "command": "start"},
    {"id": 4, "command": "close"},
)


@pytest.mark.lab
def test_it_runs_in_an_empty_root(tmp_path: Path) -> None:
    for folder in ("proc", "sys"):
        (tmp_path / folder).mkdir()
    program = tmp_path / NAME
    program.write_bytes(find_binary(NAME).read_bytes())
    program.chmod(0o755)
    script = 'mount --rbind /proc "$0/proc" && mount --rbind /sys "$0/sys" && exec chroot "$0" /nicbench-monitor'
    done = run_tried(
        ["unshare", "--mount", "--propagation", "private", "sh", "-c", script, str(tmp_path)],
        input="".join(json.dumps(request) + "\n" for request in REQUESTS),
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    replies = {line["id"]: line for line in lines if "id" in line}
    assert replies[1]["is_static"]
    assert [reply["ok"] for reply in replies.values()] == [True] * len(REQUESTS)
    missing = {each["source"] for each in replies[2]["sources"] if each["missing"]}
    assert not missing & {"cpu", "processes", "interrupts", "softnet", "network", "memory"}
    assert sum(line.get("event") == "sample" for line in lines) == 2
