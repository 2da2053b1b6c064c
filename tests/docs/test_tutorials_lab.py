"""The tutorials that measure, as a reader types them: each block of commands in its order, in a network of its own.

What a bench file asks for is shortened, so that both take seconds; the acceptance test runs the first one as it stands.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.commands import run_tried

from ._pages import ROOT, blocks_of

pytestmark = pytest.mark.lab

TUTORIALS = ROOT / "docs/tutorials"
SHORTER = {
    r"frame_bytes: .*": "frame_bytes: [512]",
    r"loads: .*": "loads: [50 %]",
    r"precision: 5 %,": "precision: 5 %, maximum_trials: 5,",
    r"drain: 200 ms, settle: 100 ms": "drain: 50 ms, settle: 20 ms",
    r"duration: [13] s": "duration: 500 ms",
    r"direction: .*": "direction: [read]",
    r"warm_up: 1 s": "warm_up: 0 s",
    r"pause: 1 s": "pause: 0 s",
}
OWN_NETWORK = """
set -e
mount --make-rprivate /
mount -t tmpfs none /run
ip netns add reader
ip netns exec reader bash typed.sh
"""


def typed(page: str, file: str, *, is_short: bool) -> Iterator[str]:
    """What is typed at the prompt: the blocks ``sh`` of a page. The bench file may be made shorter before it runs."""
    yield "set -ex\nip link set lo up"
    for block in blocks_of(TUTORIALS / page):
        if block.language == "sh":
            for line in block.text.splitlines():
                if is_short and line.startswith("sudo nicbench run"):
                    yield from (f"sed -i -E 's/{old}/{new}/' {file}" for old, new in SHORTER.items())
                yield line.removeprefix("sudo ")


def walk(page: str, file: str, folder: Path, *, is_short: bool) -> dict[str, Any]:
    """Types everything in an empty folder, and returns the summary of the run."""
    program = folder / "bin/nicbench"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m nicbench "$@"\n')
    program.chmod(0o755)
    (folder / "typed.sh").write_text("\n".join(typed(page, file, is_short=is_short)))
    (folder / "own.sh").write_text(f"export PATH={program.parent}:$PATH\n{OWN_NETWORK}")
    ended = run_tried(("unshare", "--mount", "bash", "own.sh"), cwd=folder, timeout=900)
    assert ended.returncode == 0, f"{ended.stdout}\n{ended.stderr}"
    (summary,) = folder.glob("runs/*/summary.json")
    return json.loads(summary.read_text())


def walk_two_ports_and_a_bridge_of_a_known_speed(tmp_path: Path) -> None:
    found = walk("device-under-test.md", "my-switch.yaml", tmp_path, is_short=True)
    rate = rates(found)[512]
    assert rate["lower"] is None or rate["lower"] < 9_840 * 1.3  # 40 Mb/s, and what the limiter lets pass at once


def walk_a_folder_that_is_served_to_editors(tmp_path: Path) -> None:
    folder = Path("/srv/editors")
    was_there = folder.exists()
    try:
        found = walk("storage.md", "editors.yaml", tmp_path, is_short=True)
    finally:
        for made in () if was_there else (folder / "editor1", folder / "editor2", folder):
            if made.exists():
                made.rmdir()  # empty: nicbench removes what it wrote
    assert {result["parameters"]["instances"] for result in found["results"]} == {1, 2}


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "walk_it", [walk_two_ports_and_a_bridge_of_a_known_speed, walk_a_folder_that_is_served_to_editors]
)
def test_a_tutorial_that_is_typed_line_by_line_gives_what_it_says(
    walk_it: Callable[[Path], None], tmp_path: Path
) -> None:
    walk_it(tmp_path)


@pytest.mark.acceptance
def test_the_first_tutorial_as_it_stands_finds_the_known_rates(tmp_path: Path) -> None:
    found = walk("device-under-test.md", "my-switch.yaml", tmp_path, is_short=False)
    for size, pps in {512: 9_843, 1518: 3_303}.items():
        rate = rates(found)[size]
        assert rate["lower"] <= 1.1 * pps
        assert rate["upper"] is None or rate["upper"] >= 0.95 * pps


def rates(found: dict[str, Any]) -> dict[int, dict[str, Any]]:
    """The NDR by frame size."""
    return {
        result["parameters"]["frame_bytes"]: result["values"]["ndr_frames_per_s"]
        for result in found["results"]
        if result["method"] == "throughput"
    }
