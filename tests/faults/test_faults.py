"""Every fault at every place and moment, or as many as are drawn: the run says what happened, and charges nobody."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path

import pytest

from nicbench.core.errors import HostError, UsageError
from nicbench.store.folder import RunFolder
from nicbench.tuning.restore import restore

from . import checks
from .benches import RINGS, two_machines
from .controller import Controller, Ended, conduct
from .expecting import Case
from .places import MARK, Scene, command
from .table import cases

pytestmark = pytest.mark.lab

CASES = list(cases())
HERE = [case for case in CASES if not case.bench.boots_a_machine]
POLLED = [case for case in HERE if case.bench is RINGS]
FRAMES = [case for case in HERE if case.bench.kind == "frames" and case.bench is not RINGS]
WORKLOADS = [case for case in HERE if case.bench.kind == "rounds"]
IN_GUESTS = [case for case in CASES if case.bench.boots_a_machine]
AT = {
    "early": "run_started 1",
    "before": "test_started 1",
    "during": "sending 1",
    "between": "{sample}_finished 1",
    "after": "result_ready {results}",
    "written": "run_finished 1",
}


@contextmanager
def disk(folder: Path) -> Iterator[Path]:
    """A small file system for the run folder."""
    folder.mkdir()
    command("mount", "-t", "tmpfs", "-o", "size=6m", "faults", str(folder))
    try:
        yield folder
    finally:
        command("umount", "-l", str(folder))


def play(case: Case, scene: Scene) -> tuple[Ended, list[str]]:
    """Gives the command, and lets the fault happen; the steps are those before it."""
    scene.words.update({word: scene.draw.choice(choices) for word, choices in case.bench.drawn.items()})
    if case.fault.prepare is not None:
        case.fault.prepare(scene)
    if case.moment == "early":
        case.fault.inject(scene)
    bench, text = scene.folder / "bench.yaml", case.bench.text
    for word, stands in {"NEAR": scene.near, "FAR": scene.far, **scene.words}.items():
        text = text.replace(word, stands)
    bench.write_text(text)
    sample = "trial" if case.bench.kind == "frames" else "round"
    at = AT[case.moment].format(sample=sample, results=case.bench.results)
    delay_s = scene.share * case.bench.span_s if case.moment == "during" else None

    def happens(controller: Controller) -> None:
        scene.controller = controller.pid
        if case.moment != "early":
            case.fault.inject(scene)

    arguments = ["run", str(bench), "--output", str(scene.runs), "--no-report", "--no-progress", "--wait", scene.wait]
    return conduct(arguments, scene.folder, scene.environment, at, delay_s, happens)


def resume(scene: Scene) -> Ended:
    """Goes on with the run once everything is whole again."""
    arguments = ["resume", str(scene.run), "--no-report", "--no-progress", "--wait", "10min"]
    return Controller(arguments, scene.folder, {MARK: scene.mark}, set()).end()


# `make test` draws nine cases in all; most are of workloads, which leave the processors to what runs beside them.
@pytest.mark.sampled(3)
@pytest.mark.parametrize("case", FRAMES, ids=[case.name for case in FRAMES])
def test_a_fault_of_frames_is_told_and_charged_to_nobody(case: Case, tmp_path: Path, draw: random.Random) -> None:
    assert_told(case, tmp_path, draw)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("case", WORKLOADS, ids=[case.name for case in WORKLOADS])
def test_a_fault_of_workloads_is_told_and_charged_to_nobody(case: Case, tmp_path: Path, draw: random.Random) -> None:
    assert_told(case, tmp_path, draw)


@pytest.mark.sampled(1)  # both sides poll, each of them a processor
@pytest.mark.parametrize("case", POLLED, ids=[case.name for case in POLLED])
def test_a_fault_of_rings_is_told_and_charged_to_nobody(case: Case, tmp_path: Path, draw: random.Random) -> None:
    assert_told(case, tmp_path, draw)


@pytest.mark.vm
@pytest.mark.acceptance  # each boots a machine, or two
@pytest.mark.parametrize("case", IN_GUESTS, ids=[case.name for case in IN_GUESTS])
def test_a_fault_of_a_guest_is_told_and_charged_to_nobody(case: Case, tmp_path: Path, draw: random.Random) -> None:
    assert_told(case, tmp_path, draw)


def assert_told(case: Case, tmp_path: Path, draw: random.Random) -> None:
    mark = f"{os.getpid()}-{draw.getrandbits(32):08x}"
    has_own = case.bench.has_own_namespaces
    near, far = (f"nb{mark[-8:]}{end}" if has_own else "" for end in "nf")
    with two_machines(near, far) if has_own else nullcontext(), disk(tmp_path / "runs") as runs:
        scene = Scene(mark, tmp_path, runs, draw, draw.uniform(0.05, 0.4), near=near, far=far)
        scene.environment[MARK] = mark
        before = checks.state((near, far) if has_own else ())
        try:
            ended, steps = play(case, scene)
            troubles = judge(case, scene, ended, steps, before)
        finally:
            scene.mend()
    assert not troubles, f"drawn at {scene.share:.2f}: " + "\n".join(troubles) + f"\n\n{ended.said}"


def judge(case: Case, scene: Scene, ended: Ended, steps: list[str], before: dict[str, object]) -> list[str]:
    """All that is wrong with how a case ended."""
    folder = None
    with suppress(ValueError, HostError, UsageError):
        folder = RunFolder.open(scene.run)
    troubles = [*checks.unexpected(ended, case.expect, folder)]
    if ended.status < 0 and folder is not None:
        asyncio.run(restore(str(folder.path)))
    scene.mend()
    if folder is not None:
        troubles += [*checks.unreadable(folder.path, steps), *checks.wrong_results(folder, case.bench)]
        troubles += checks.wrong_changes(folder, case.fault.place)
        if case.expect.resumes and ended.status != 0:
            again = resume(scene)
            if again.status != 0:
                troubles.append(f"resume ended with {again.status}: {again.said}")
            troubles += checks.wrong_results(RunFolder.open(folder.path), case.bench)
    namespaces = (scene.near, scene.far) if scene.near else ()
    after = checks.state(namespaces)
    troubles += [f"left behind: {each}" for each in checks.differences(before, after)]
    troubles += [f"still runs: {each}" for each in checks.processes_left(scene.mark).values()]
    return troubles
