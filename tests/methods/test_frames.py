"""Frames: what instances are asked, where they work, what is prepared, and what a round of them comes to."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import nullcontext

import pytest
from pydantic import ValidationError

from nicbench.core.bond import Bond, BondObservation, BondPort, Connection, PortBytes
from nicbench.core.reading import Times
from nicbench.core.result import Result, ResultVerdict
from nicbench.core.round import (
    Figures,
    FrameFigures,
    HostCommand,
    Job,
    JobOutcome,
    Mount,
    Placement,
    RestartServers,
    RoundRequest,
)
from nicbench.methods._media import PROFILES, largest_frame_bytes
from nicbench.methods.frames import Frames
from nicbench.stats.bonds import judge_bond
from nicbench.stats.latency import histogram_of

from .round_contexts import Laboratory, fast_laboratory

FRAME_BYTES = 4096 * 3112 * 4 + 65_536


def times(*each_ns: int) -> Times:
    return Times(
        count=len(each_ns),
        minimum_ns=min(each_ns),
        mean_ns=sum(each_ns) / len(each_ns),
        maximum_ns=max(each_ns),
        histogram=histogram_of([(one, 1) for one in each_ns]),
    )


def saw(frames_per_s: float, seconds: float = 20.0, due: int | None = 480) -> JobOutcome:
    frames = round(frames_per_s * seconds)
    figures = FrameFigures(
        engine="io_uring",
        measured_ns=round(seconds * 1e9),
        frames=frames,
        bytes=frames * FRAME_BYTES,
        frames_per_s=frames_per_s,
        bytes_per_s=frames_per_s * FRAME_BYTES,
        dropped_frames=None if due is None else due - min(frames, due),
        due_frames=due,
        completion=times(*[5_000_000] * 99, 40_000_000),
        lateness=None if due is None else times(*[0] * 99, 9_000_000),
        cpu_ns=frames * 2_000_000,
        all_frames=frames,
    )
    return JobOutcome(figures=Figures(frames=figures), began_s=0.0, took_s=seconds)


def by_instance(*rates: float | None) -> Callable[[int, Job], JobOutcome]:
    def outcome(_: int, job: Job) -> JobOutcome:
        rate = rates[int(str(job.label).removeprefix("instance ")) - 1]
        return JobOutcome(failure="frame 7 cannot be read", repeatable=False) if rate is None else saw(rate)

    return outcome


def studied(laboratory: Laboratory, **options: object) -> tuple[Result, ...]:
    method = Frames("editors", Frames.Options.model_validate({"directories": "/mnt/d{instance}", **options}))
    return asyncio.run(method.run(laboratory.context))


def of_part(results: tuple[Result, ...], part: str) -> list[Result]:
    return [one for one in results if one.parameters["part"] == part]


def test_the_defaults_are_those_of_the_published_study() -> None:
    laboratory = fast_laboratory(by_instance(*[24.0] * 12))
    results = studied(laboratory)
    assert [(one.parameters["direction"], one.parameters["instances"]) for one in of_part(results, "runs")] == [
        (direction, instances) for direction in ("read", "write") for instances in range(1, 13)
    ]
    request = laboratory.requests[2]
    assert [(job.workload, job.label, job.server) for job in request.jobs] == [
        ("nicbench-frames", f"instance {number}", None) for number in (1, 2, 3)
    ]
    asked = request.jobs[0].ask
    assert (asked.duration_s, asked.frames.warm_up_s, asked.frames.frames_per_s) == (20.0, 3.0, 24.0)
    assert (asked.frames.depth, asked.frames.order, asked.frames.streamed) == (4, "forward", False)
    assert (request.pause_s, request.duration_s) == (3.0, 23.0)


def test_every_instance_has_a_folder_of_its_own_and_the_frames_to_read_are_written_once() -> None:
    laboratory = fast_laboratory(by_instance(24.0, 24.0, 24.0), clients_per_port=2)
    studied(laboratory, instances=[1, 3])
    preparation = laboratory.player.prepared[0]
    assert [(each.endpoint, each.path) for each in preparation.folders] == [
        (client, f"/mnt/d{number}/nicbench-fake/editors-{number}-{direction}")
        for direction in ("read", "write")
        for number, client in ((1, "c00"), (2, "c01"), (3, "c00"))
    ]
    # So many frames have their turn in 23 s, and some to spare.
    assert {each.needed_bytes for each in preparation.folders} == {(24 * 23 + 2) * (FRAME_BYTES)}
    assert [(job.ask.frames.task, job.ask.frames.frames) for job in preparation.jobs if job.ask.frames] == [
        ("prepare", 554)
    ] * 3
    seeds = {job.ask.frames.seed for job in preparation.jobs if job.ask.frames}
    assert len(seeds) == 3, "a server that deduplicates finds nothing"
    read = laboratory.requests[1].jobs
    assert [job.ask.frames.directory for job in read if job.ask.frames] == [
        each.path for each in preparation.folders[:3]
    ]
    assert all(preparation == other for other in laboratory.player.prepared)


def test_readers_and_writers_work_at_once_and_each_row_says_which_it_was() -> None:
    laboratory = fast_laboratory(by_instance(24.0, 24.0, 24.0, 20.0))
    results = studied(laboratory, direction=("both",), instances=(4,))
    tasks = [job.ask.frames.task for job in laboratory.requests[0].jobs if job.ask.frames]
    assert tasks == ["read", "write", "read", "write"]
    prepared = laboratory.player.prepared[0]
    assert [job.label for job in prepared.jobs] == ["instance 1", "instance 3"]
    assert len(prepared.folders) == 4
    (whole,) = of_part(results, "runs")
    assert (whole.parameters["direction"], whole.values["sum_frames_per_s"]) == ("both", 92.0)
    assert [one.values["task"] for one in of_part(results, "instances")] == ["reading", "writing"] * 2
    with pytest.raises(ValidationError, match="one instance cannot do `both`"):
        Frames.Options(direction=("both",))


def test_instances_that_begin_one_after_the_other_are_measured_at_the_same_time() -> None:
    laboratory = fast_laboratory(by_instance(24.0, 24.0, 24.0))
    studied(laboratory, instances=[3], direction=["read"], ramp_delay=2.0)
    (round_of_three,) = laboratory.requests
    asked = [job.ask.frames for job in round_of_three.jobs if job.ask.frames]
    assert [one.after_s for one in asked] == [0.0, 2.0, 4.0]
    assert {one.after_s + one.warm_up_s for one in asked} == {4.0 + 3.0}
    assert round_of_three.duration_s == 4.0 + 3.0 + 20.0
    # The first of them has its turns for the longest time.
    (prepared, *_) = laboratory.player.prepared
    assert {job.ask.frames.frames for job in prepared.jobs if job.ask.frames} == {24 * 27 + 2}


def test_a_round_of_instances_is_summed_up_and_each_of_them_told() -> None:
    laboratory = fast_laboratory(by_instance(24.0, 23.8, 12.0))
    results = studied(laboratory, instances=[3], direction=["read"])
    (whole,), instances = of_part(results, "runs"), of_part(results, "instances")
    assert whole.values["sum_frames_per_s"] == pytest.approx(59.8)
    assert (whole.values["target_frames_per_s"], whole.values["met"], whole.values["instances_met"]) == (72.0, "no", 2)
    assert (whole.values["dropped_frames"], whole.values["due_frames"]) == (4 + 240, 3 * 480)
    assert whole.values["bytes_per_s"] == pytest.approx(59.8 * FRAME_BYTES)
    assert (whole.values["completion_p50_ns"], whole.values["completion_maximum_ns"]) == (
        pytest.approx(5e6, rel=2e-3),
        40_000_000,
    )
    assert [one.values["met"] for one in instances] == ["yes", "yes", "no"]
    assert [one.id for one in instances] == [f"editors/read/3/{number}" for number in (1, 2, 3)]
    assert instances[0].values["cpu_per_frame_ns"] == 2_000_000
    assert [one.id for one in laboratory.published] == [one.id for one in results]


def test_an_instance_that_failed_leaves_the_sum_unknown_and_the_others_told() -> None:
    results = studied(fast_laboratory(by_instance(24.0, None)), instances=[2], direction=["write"])
    whole, first, second = results
    assert whole.verdict == "incomplete"
    assert (whole.values["sum_frames_per_s"], whole.values["met"]) == (None, None)
    assert (first.values["frames_per_s"], second.values["frames_per_s"]) == (24.0, None)
    assert (first.values["met"], second.values["met"]) == ("yes", None)
    assert "frame 7 cannot be read" in whole.disturbances[0]


def test_what_holds_them_is_the_rate_they_are_held_to_or_the_link() -> None:
    fast = 40 * 24 * FRAME_BYTES * 8.0
    (whole, *_) = studied(fast_laboratory(by_instance(24.0), link_bits_per_s=fast), instances=[1], direction=["read"])
    assert whole.values["limited_by"] == "frame rate"
    link = 20 * FRAME_BYTES * 8.0
    (whole, *_) = studied(
        fast_laboratory(by_instance(9.5, 9.6), link_bits_per_s=link), instances=[2], direction=["read"]
    )
    assert (whole.values["limited_by"], whole.values["limit"]) == ("link", "the link was full")


def test_more_than_the_link_carries_came_out_of_the_clients_memory() -> None:
    laboratory = Laboratory(by_instance(20.0), link_bits_per_s=10 * FRAME_BYTES * 8.0)
    whole, instance = studied(laboratory, instances=[1], direction=["read"])
    assert whole.values["limited_by"] == "client's memory"
    assert whole.disturbances[0].startswith("c00 moved ")
    for one in (whole, instance):
        assert (one.verdict, one.values["met"]) == (ResultVerdict.INCOMPLETE, None)


def test_a_link_carries_as_much_each_way() -> None:
    """A reader and a writer of 24 frames/s each, over a link that carries 30 frames/s."""
    laboratory = Laboratory(by_instance(24.0, 24.0), link_bits_per_s=30 * 8 * FRAME_BYTES)
    (whole,) = of_part(studied(laboratory, direction=("both",), instances=(2,)), "runs")
    assert whole.values["sum_frames_per_s"] == 48.0
    (one,) = of_part(studied(laboratory, direction=("read",), instances=(2,)), "runs")
    assert one.values["limited_by"] == "client's memory"


def test_frames_out_of_the_clients_memory_are_no_proof_of_a_server_however_fast_they_come() -> None:
    laboratory = Laboratory(by_instance(24.0), link_bits_per_s=10 * FRAME_BYTES * 8.0)
    whole, instance = studied(laboratory, instances=[1], direction=["read"], frames=10)
    assert (whole.values["limited_by"], whole.values["sum_frames_per_s"]) == ("client's memory", None)
    assert (instance.values["frames_per_s"], instance.verdict) == (None, ResultVerdict.INCOMPLETE)


@pytest.mark.parametrize(("target", "frames_per_s", "fits"), [(25, 24, False), (24.2, 24, True), (25, None, True)])
def test_a_target_beyond_what_instances_are_held_to_is_refused(
    target: float, frames_per_s: float | None, fits: bool
) -> None:
    with nullcontext() if fits else pytest.raises(ValidationError, match="more than instances are held to"):
        Frames.Options(target=target, frames_per_s=frames_per_s, frames=100)


def test_an_existing_stream_is_cut_into_frames_of_the_size_that_was_asked_for() -> None:
    laboratory = fast_laboratory(by_instance(24.0))
    options = {"instances": [1], "direction": ["read"], "existing": True, "streamed": True}
    studied(laboratory, **options, pattern="film.mov", frame_size=8_294_400)
    asked = laboratory.requests[-1].jobs[0].ask.frames
    assert asked.frame_bytes == 8_294_400


def test_without_a_limit_there_is_no_target_unless_one_is_asked() -> None:
    laboratory = fast_laboratory(lambda _, job: saw(300.0, due=None))
    options = {"instances": [1], "direction": ["read"], "frames_per_s": None, "frames": 100}
    (whole, instance) = studied(laboratory, **options)
    assert "target_frames_per_s" not in whole.values
    assert "met" not in instance.values
    asked = laboratory.requests[0].jobs[0].ask.frames
    assert (asked.frames, asked.repeat, asked.frames_per_s) == (100, True, None)
    (whole, _) = studied(laboratory, **options, target=250.0)
    assert (whole.values["met"], whole.values["target_frames_per_s"]) == ("yes", 250.0)


def test_frames_of_somebody_else_are_read_where_they_are_and_nothing_is_prepared() -> None:
    laboratory = fast_laboratory(by_instance(24.0))
    studied(laboratory, instances=[1], direction=["read"], existing=True, pattern="shot_%04d.exr", first=1001)
    preparation = laboratory.player.prepared[0]
    assert (preparation.folders, preparation.jobs) == ((), ())
    asked = laboratory.requests[0].jobs[0].ask.frames
    assert (asked.directory, asked.existing, asked.pattern, asked.first) == ("/mnt/d1", True, "shot_%04d.exr", 1001)
    assert (asked.verify, asked.repeat, asked.profile) == ("none", True, None)


def test_commands_come_before_caches_are_dropped_on_each_machine_once() -> None:
    laboratory = fast_laboratory(by_instance(24.0, 24.0), clients_per_port=2)
    studied(laboratory, instances=[2], direction=["read"], before_each=[{"host": "server", "run": "restart"}])
    said = [(each.host, each.run, each.on_machine) for each in laboratory.player.before]
    assert said[0] == ("server", "restart", False)
    assert [(host, on_machine) for host, _, on_machine in said[1:]] == [("h00", True), ("h01", True), ("server", True)]
    laboratory = fast_laboratory(by_instance(24.0))
    studied(laboratory, instances=[1], direction=["read"], drop_caches=False)
    assert laboratory.player.before == []


def test_what_was_written_before_goes_before_anything_else() -> None:
    laboratory = fast_laboratory(by_instance(24.0, 24.0), clients_per_port=2)
    studied(laboratory, instances=[2], direction=["write"], before_each=[{"host": "server", "run": "fstrim -a"}])
    folder = "/mnt/d2/nicbench-fake/editors-2-write"
    said = [(each.host, each.run) for each in laboratory.player.before]
    assert said[1] == ("h01", f"rm -rf --one-file-system -- {folder} && mkdir -- {folder}")
    assert said[2] == ("server", "fstrim -a")


def test_a_large_seed_is_one_of_64_bits() -> None:
    laboratory = fast_laboratory(by_instance(24.0), seed=2**63 - 1)
    studied(laboratory, instances=[1], direction=["read"])
    (job,) = laboratory.player.prepared[0].jobs
    assert 0 <= job.ask.frames.seed < 2**64


def test_clients_with_fewer_instances_are_not_slow_for_that() -> None:
    laboratory = fast_laboratory(lambda _, job: saw(8.0), clients_per_port=3, link_bits_per_s=1e12)
    (whole, *_) = studied(laboratory, instances=[5], direction=["read"])
    assert whole.values["limited_by"] == "unknown"


def test_places_have_clients_cpus_and_memory_of_their_own() -> None:
    laboratory = fast_laboratory(by_instance(24.0, 24.0), clients_per_port=2)
    places = [{"directory": "/a", "client": "c01", "cpus": "0-1,4", "memory_node": 1}, "/b"]
    studied(laboratory, instances=[2], direction=["read"], directories=places)
    first, second = laboratory.requests[0].jobs
    assert (first.client, first.client_placement) == ("c01", Placement(cpus=(0, 1, 4), memory_node=1))
    assert (second.client, second.client_placement) == ("c01", Placement())


def test_without_directories_the_shares_of_the_dut_are_used() -> None:
    laboratory = fast_laboratory(by_instance(24.0, 24.0), clients_per_port=2)
    laboratory.context.mounts = tuple(
        Mount(
            share=number,
            kind="sftp",
            endpoint=endpoint,
            directory=f"/run/m/{number}",
            server_port="s0",
            address="198.18.0.1",
            tcp_port=7000,
        )
        for number, endpoint in ((1, "c00"), (2, "c01"))
    )
    method = Frames("editors", Frames.Options.model_validate({"instances": [1, 2], "direction": ["read"]}))
    assert method.objection(laboratory.context) is None
    asyncio.run(method.run(laboratory.context))
    assert [(job.client, job.label) for job in laboratory.requests[1].jobs] == [
        ("c00", "instance 1"),
        ("c01", "instance 2"),
    ]
    more = Frames("editors", Frames.Options()).objection(laboratory.context)
    assert "12 instances are asked for, and the DUT serves 2 shares" in more.message


def shares(laboratory: Laboratory, kind: str, *, survives: bool) -> None:
    laboratory.context.mounts = (
        Mount(
            share=1,
            kind=kind,
            endpoint="c0",
            directory="/run/m/1",
            server_port="s0",
            address="198.18.0.1",
            tcp_port=2049,
            survives_restart=survives,
        ),
    )


@pytest.mark.parametrize(
    ("options", "survives", "before"),
    [
        ({}, True, ["server: my command", "restart", "drop caches"]),
        ({"restart_servers": False}, True, ["server: my command", "drop caches"]),
        ({}, False, ["server: my command", "drop caches"]),
        ({"directories": ["/mnt/d1"]}, True, ["server: my command", "drop caches"]),
    ],
)
def test_servers_whose_mounts_survive_it_are_restarted_before_their_caches_are_dropped(
    options: dict[str, object], survives: bool, before: list[str]
) -> None:
    laboratory = fast_laboratory(by_instance(24.0))
    shares(laboratory, "a kind", survives=survives)
    given = {"instances": [1], "direction": ["read"], "before_each": [{"host": "server", "run": "my command"}]}
    asyncio.run(Frames("editors", Frames.Options.model_validate({**given, **options})).run(laboratory.context))
    found = []
    for one in laboratory.requests[0].before:
        match one:
            case RestartServers():
                found.append("restart")
            case HostCommand(on_machine=True):
                found.append("drop caches")
            case HostCommand():
                found.append(f"{one.host}: {one.run}")
    assert list(dict.fromkeys(found)) == before


def test_a_restart_that_mounts_do_not_survive_is_refused() -> None:
    laboratory = fast_laboratory(by_instance(24.0))
    shares(laboratory, "sftp", survives=False)
    options = Frames.Options.model_validate({"instances": [1], "restart_servers": True})
    objection = Frames("editors", options).objection(laboratory.context)
    assert "mounts of sftp do not survive it" in objection.message
    assert "before_each" in objection.next_step


def test_without_directories_or_shares_it_says_what_to_write() -> None:
    objection = Frames("editors", Frames.Options()).objection(fast_laboratory(by_instance()).context)
    assert "directories: /mnt/d{instance}" in objection.next_step


def test_clients_and_hosts_that_are_not_there_are_named() -> None:
    options = {"instances": [1], "directories": [{"directory": "/a", "client": "c9"}]}
    method = Frames("e", Frames.Options.model_validate({**options, "before_each": [{"host": "nas", "run": "true"}]}))
    found = list(method.find_misfits({"s0": ["c0", "c1"]}, ["server", "h0"]))
    assert [(each.option[0], each.next_step) for each in found] == [
        ("directories", "write one of `c0`, `c1`"),
        ("before_each", "write one of `server`, `h0`"),
    ]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"frames_per_s": None}, "write `frames`"),
        ({"existing": True}, "direction: \\[read\\]"),
        ({"directories": "mnt/d1"}, "whole path"),
        ({"directories": "/mnt/{number}"}, "{instance}"),
        ({"directories": "/mnt/../etc"}, "whole path"),
        ({"directories": ["/a", "/b"], "instances": [3]}, "3 instances are asked for, and there are 2"),
        ({"directories": [{"directory": "/a", "cpus": "0-x"}]}, "0-3,8"),
        ({"pattern": "shot.dpx"}, "%d or %06d"),
        ({"pattern": "a/%d"}, "no slash"),
        ({"pattern": "x" * 300 + "%d"}, "at most 200 bytes"),
        ({"streamed": True, "pattern": "../x"}, "without a slash"),
        ({"streamed": True, "pattern": ".."}, "without a slash"),
        ({"streamed": True, "pattern": "nicbench-frames.json"}, "and not nicbench-frames.json"),
        ({"request_size": 1000}, "whole blocks"),
        ({"profile": "5k"}, "4k"),
        ({"instances": []}, "at least 1"),
        ({"instances": [0]}, "greater than or equal to 1"),
        ({"instances": [2, 2]}, "named twice"),
        ({"frames_per_s": 0.0}, "greater than 0"),
    ],
)
def test_options_that_mean_nothing_are_refused(wrong: dict[str, object], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        Frames.Options.model_validate({"directories": "/mnt/d{instance}", **wrong})


def test_runs_grow_until_the_sum_of_the_instances_is_known() -> None:
    whole, instance = studied(fast_laboratory(by_instance(24.0)), instances=[1], direction=["read"])
    assert Frames.main_values(whole) == ("sum_frames_per_s",)
    assert Frames.main_values(instance) == ()


def test_the_sizes_of_profiles_are_those_of_the_engine() -> None:
    assert largest_frame_bytes("4k", header_bytes=0) == 50_987_008
    assert largest_frame_bytes("4k") == FRAME_BYTES
    assert largest_frame_bytes("4k-16", header_bytes=0) == 76_480_512
    assert largest_frame_bytes("4k", 1 << 20) == 1 << 20
    assert largest_frame_bytes("4k", 1000, 100) == 4096
    assert all(largest_frame_bytes(profile) % 4096 == 0 for profile in PROFILES)


# Frames over a bond: which instance used which port, so that a halved rate is explained.


FRAME_BYTES_OF_FRAMES_BOND = 51_052_544
SECONDS = 20.0
# Each instance's mount has its own port of the client; from 10.0.0.1:2049 they hash to eth2 or eth3 (test_bonds.py).
CLIENT_PORTS = {1: 0x0300, 2: 0x0302, 3: 0x0702}
RATES = {1: 24.0, 2: 11.9, 3: 12.1}


def saw_of_frames_bond(number: int, job: Job) -> JobOutcome:
    rate = RATES[int(str(job.label).removeprefix("instance "))]
    frames = round(rate * SECONDS)
    figures = FrameFigures(
        engine="io_uring",
        measured_ns=round(SECONDS * 1e9),
        frames=frames,
        bytes=frames * FRAME_BYTES_OF_FRAMES_BOND,
        frames_per_s=rate,
        bytes_per_s=rate * FRAME_BYTES_OF_FRAMES_BOND,
        dropped_frames=480 - frames,
        due_frames=480,
    )
    return JobOutcome(figures=Figures(frames=figures), began_s=0.0, took_s=SECONDS)


def seen_by_the_server(request: RoundRequest) -> tuple[BondObservation, ...]:
    """What left the server until the midst of a round in which it was read from."""
    bond = Bond(
        name="bond0",
        mode="802.3ad",
        policy="layer3+4",
        ports=tuple(BondPort(name=name, usable=True, speed_bits_per_s=10e9) for name in ("eth2", "eth3")),
        kernel="6.1.0",
    )
    moved = {number: round(RATES[number] * SECONDS / 2) * FRAME_BYTES_OF_FRAMES_BOND for number in CLIENT_PORTS}
    flows = [
        (
            (number,),
            Connection(
                source="10.0.0.1",
                source_port=2049,
                destination="10.0.0.2",
                destination_port=port,
                sent_bytes=moved[number],
                received_bytes=moved[number] // 1000,
            ),
        )
        for number, port in CLIENT_PORTS.items()
    ]
    ports = {
        name: PortBytes(sent=2 * sent, received=5000, sent_until_midst=sent)
        for name, sent in (("eth2", moved[1]), ("eth3", moved[2] + moved[3]))
    }
    return (judge_bond("s00", bond, flows, ports),)


def studied_of_frames_bond(laboratory: Laboratory) -> list[Result]:
    options = {"directories": "/mnt/d{instance}", "direction": ["read"], "instances": [3], "pause": 0}
    method = Frames("editors", Frames.Options.model_validate(options))
    return list(asyncio.run(method.run(laboratory.context)))


def test_instances_that_shared_a_port_are_named_with_what_each_had() -> None:
    laboratory = fast_laboratory(saw_of_frames_bond)
    laboratory.player.bonded = seen_by_the_server
    whole, *instances = studied_of_frames_bond(laboratory)
    assert whole.values["bond"] == (
        "bond0 of s00 (802.3ad, layer3+4): instance 1 had eth2 (10 Gb/s) to itself: 24.0 frames/s; "
        "instances 2 and 3 shared eth3 (10 Gb/s): 11.9 and 12.1 frames/s. "
        "3 connections hashed to 2 ports are spread evenly in 75 % of all cases"
    )
    assert [one.values["bond_port"] for one in instances] == ["eth2", "eth3", "eth3"]


def test_without_a_bond_there_is_no_value_of_one() -> None:
    whole, *instances = studied_of_frames_bond(fast_laboratory(saw_of_frames_bond))
    assert "bond" not in whole.values
    assert not any("bond_port" in one.values for one in instances)
