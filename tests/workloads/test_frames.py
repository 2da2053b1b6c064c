"""nicbench-frames: what it is asked, what its recorded results come to, and which of its failures end a run."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nicbench.core.frames import FramesSpec
from nicbench.core.round import JobSpec
from nicbench.workloads.base import End, Output, WorkloadError
from nicbench.workloads.tool_output import find_implausible
from nicbench.workloads.tools.nicbench_frames import NicbenchFrames

from .goldens import golden, job

READ = JobSpec(
    operation="frames",
    duration_s=1.0,
    frames=FramesSpec(task="read", directory="/mnt/d1", warm_up_s=0.5, frames_per_s=60_000 / 1001, seed=7),
)


def recorded(case: str, status: int = 0) -> Output:
    return Output(golden(f"nicbench-frames-0.1.0-{case}.client"), status=status)


def test_its_command_line_says_everything_that_it_does(host: End) -> None:
    command = NicbenchFrames().client_command(job("nicbench-frames", READ), host, None)
    assert command == (
        *("nicbench-frames", "read", "/mnt/d1", "--seconds", "1", "--warm-up", "0.5", "--fps", "59.9400599401"),
        *("--read-ahead", "1", "--order", "forward", "--seed", "7", "--threads", "1", "--engine", "auto"),
        *("--depth", "4", "--request", "1048576", "--sync", "none", "--verify", "blocks", "--json"),
    )


def test_an_instance_that_begins_later_is_told_so_and_takes_longer(host: End) -> None:
    asked = READ.frames.replace(after_s=2.5)  # type: ignore[union-attr]
    later = job("nicbench-frames", READ.replace(frames=asked))
    assert " --after 2.5 " in " ".join(NicbenchFrames().client_command(later, host, None))
    assert NicbenchFrames().expected_s(later) == 4.0


def test_every_frames_times_are_left_where_somebody_keeps_them(host: End) -> None:
    asked = READ.frames.replace(samples=True)  # type: ignore[union-attr]
    wanted, workload = job("nicbench-frames", READ.replace(frames=asked)), NicbenchFrames()
    [left] = workload.leaves(wanted)
    command = workload.client_command(wanted, replace(host, folder="/dev/shm/ours/r0001/1"), None)
    assert " ".join(command).endswith(f"--samples /dev/shm/ours/r0001/1/{left.name} --json")
    assert "--samples" not in workload.client_command(wanted, host, None)
    assert workload.leaves(job("nicbench-frames", READ)) == ()


def test_a_whole_frame_a_request_and_switches(host: End) -> None:
    asked = FramesSpec(
        task="write",
        directory="/mnt/d1",
        frame_bytes=4096,
        request_bytes=0,
        direct=True,
        streamed=True,
        repeat=True,
        engine="io_uring",
        sync="end",
    )
    command = NicbenchFrames().client_command(
        job("nicbench-frames", JobSpec(operation="frames", frames=asked)), host, None
    )
    words = " ".join(command)
    assert "--frame-size 4096" in words
    assert "--request frame" in words
    assert "--engine io-uring" in words
    assert "--content unique" in words
    assert words.endswith("--direct --streamed --repeat --json")
    assert "--verify" not in words


def test_a_recorded_read_at_a_limit() -> None:
    figures = NicbenchFrames().parse(job("nicbench-frames", READ), recorded("read"), None)
    said = figures.frames
    assert said is not None
    assert (said.frames_per_s, said.due_frames, said.dropped_frames) == (24.0, 24, 0)
    assert (said.bytes, said.engine) == (24 * 65_536, "io_uring")
    assert said.completion is not None
    assert said.completion.count == 24
    assert find_implausible(job("nicbench-frames", READ), figures) == ()


def test_without_a_limit_nothing_was_due() -> None:
    said = NicbenchFrames().parse(job("nicbench-frames", READ), recorded("write-unlimited"), None).frames
    assert said is not None
    assert (said.due_frames, said.dropped_frames, said.lateness) == (None, None, None)


def test_a_frame_that_failed_is_told_by_its_name_and_ends_the_run() -> None:
    workload, output = NicbenchFrames(), recorded("vanished", 4)
    assert "frame 20, /mnt/d1/frame_000020.dpx: No such file or directory" in str(workload.complaint(output))
    assert workload.ends_run(output)


def test_wrong_content_fails_this_instance_alone() -> None:
    text = golden("nicbench-frames-0.1.0-vanished.client").replace('"kind":"vanished"', '"kind":"wrong_content"')
    assert not NicbenchFrames().ends_run(Output(text, status=4))


def test_what_it_says_before_it_can_begin_is_told() -> None:
    output = Output("", stderr="nicbench-frames: /mnt/d1 is not a directory\n  next: mount it", status=3)
    assert NicbenchFrames().complaint(output) == "/mnt/d1 is not a directory / next: mount it"
    assert NicbenchFrames().ends_run(output)
    assert not NicbenchFrames().ends_run(Output("", stderr="killed", status=-9))


@pytest.mark.parametrize(
    ("was", "becomes", "said"),
    [
        ('"frames_per_s":24.0', '"frames_per_s":25.2', "25.2 frames/s"),
        ('"missed":0', '"missed":25', "25 dropped frames of 24"),
        ('"measured_ns":1000000000', '"measured_ns":9000000000', "9 s were measured"),
    ],
)
def test_figures_that_cannot_be_so_are_refused(was: str, becomes: str, said: str) -> None:
    text = golden("nicbench-frames-0.1.0-read.client")
    assert was in text
    asked = job("nicbench-frames", READ)
    wrong = find_implausible(asked, NicbenchFrames().parse(asked, Output(text.replace(was, becomes)), None))
    assert any(said in each for each in wrong)


def test_an_older_program_is_no_result() -> None:
    text = golden("nicbench-frames-0.1.0-read.client").replace('"missed":0,', "")
    with pytest.raises(WorkloadError, match="missed"):
        NicbenchFrames().parse(job("nicbench-frames", READ), Output(text), None)


def test_a_text_in_the_place_of_an_interval_is_no_result() -> None:  # found by fuzzing
    text = golden("nicbench-frames-0.1.0-read.client").replace('"intervals":[', '"intervals":["x",')
    with pytest.raises(WorkloadError, match="'x' is no object"):
        NicbenchFrames().parse(job("nicbench-frames", READ), Output(text), None)


@pytest.fixture
def host() -> End:
    from tests.fakes import FakeHost

    return End(host=FakeHost("client"), address="198.18.0.2")
