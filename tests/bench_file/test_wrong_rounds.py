"""Wrong tests of workloads: where the error points, what it says, and what to do."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from nicbench.bench_file import BenchFile, WrongBenchFileError

Read = Callable[[str], BenchFile]

HEAD = "nicbench: 1\ntitle: x\nlab: {kind: clients}\ndut: {kind: server}\ntests:\n  - name: t\n    method: "

WRONG: dict[str, tuple[str, int, int, str, str | None]] = {
    "stream: a link that fails of what is no bond": (
        "stream\n    failure: {port: s0, link: 1}\n",
        *(
            8,
            5,
            "a link of s0 is to fail, which is no bond that nicbench makes",
            "write `bond: {links: 4}` under `lab`",
        ),
    ),
    "transfer: a source that is no place": (
        "transfer\n    source: disk\n",
        *(8, 13, "`tests[0].source`: `disk` is no folder", "write `memory`, a folder (`/mnt/data`)"),
    ),
    "transfer: a tool that cannot have the file where it is asked for": (
        "transfer\n    workload: nuttcp\n    sink: /mnt/data\n",
        *(8, 15, "`nuttcp` cannot do what `t` asks: nuttcp's server has no files", "choose another tool: iperf3"),
    ),
    "transfer: bytes without a unit": (
        "transfer\n    transfer_bytes: [1000000]\n",
        *(8, 22, "`tests[0].transfer_bytes[0]`: 1000000 has no unit", "write a size with its unit"),
    ),
    "agreement: a tool with itself": (
        "agreement\n    workloads: [iperf3, iperf3]\n",
        *(6, 5, "`iperf3` is named twice in `workloads`: a tool agrees with itself; name another one", None),
    ),
    "agreement: one tool": (
        "agreement\n    workloads: [iperf3]\n",
        *(8, 16, "`tests[0].workloads` is too short", "write at least 2"),
    ),
    "agreement: a tool that there is not": (
        "agreement\n    workloads: [iperf3, iperf33]\n",
        *(8, 16, "unknown workload `iperf33`", "did you mean `iperf3`?"),
    ),
    "request-response: a message that the tool has no room for": (
        "request-response\n    message_bytes: [1 B]\n",
        *(7, 13, "sockperf's messages have 14 to", "choose another tool: netperf, qperf"),
    ),
    "request-response: a load that is no tool": (
        "request-response\n    load: {workload: iperf33}\n",
        *(8, 22, "unknown workload `iperf33`", "did you mean `iperf3`?"),
    ),
    "request-response: a load that cannot be": (
        "request-response\n    load: heavy\n",
        *(8, 11, "`tests[0].load` must be", None),
    ),
    "a method of frames": (
        "throughput\n",
        *(
            3,
            13,
            "`throughput` measures with the tester's frames, and the lab `clients` is for workloads",
            "choose a method of",
        ),
    ),
    "placement: a method that is none": (
        "placement\n    of: {method: [stream]}\n",
        *(8, 9, "`of` needs a `method`, one of: ", None),
    ),
    "placement: a method that places nothing": (
        "placement\n    of: {method: forwarding}\n",
        *(8, 9, "`forwarding` runs no process of a tool on the measured host", None),
    ),
    "stream: writes of nothing": (
        "stream\n    write_bytes: [0 B]\n",
        *(8, 19, "`tests[0].write_bytes[0]` is `0`: it must be at least 1", None),
    ),
    "stream: a window of nothing": (
        "stream\n    window: 0 B\n",
        *(8, 13, "`tests[0].window` is `0`: it must be at least 1", None),
    ),
    "stream: a rate of nothing": (
        "stream\n    rate: 0 b/s\n",
        *(8, 11, "`tests[0].rate` is `0 b/s`: it must be at least 1", None),
    ),
    "incast: a probe of nothing": (
        "incast\n    probe_bytes: 0 B\n",
        *(8, 18, "it must be at least 1", None),
    ),
    "frames: nowhere to work": (
        "frames\n    instances: [1]\n",
        *(8, 16, "`t` has no directory to work in: `server` serves no shares", "write `directories: /mnt/d{instance}`"),
    ),
    "frames: a directory that begins nowhere": (
        "frames\n    directories: mnt/d1\n",
        *(8, 18, "a directory is given with its whole path", None),
    ),
    "frames: a directory that is a number": (
        "frames\n    directories: 7\n",
        *(8, 18, "7 is no directory; write /mnt/d{instance}", None),
    ),
    "frames: a command on a host that is not there": (
        "frames\n    directories: /mnt\n    before_each: [{host: nas, run: sync}]\n",
        *(9, 5, "there is no host `nas`", "write one of `server`, `c0`"),
    ),
    "frames: a rate without a unit": (
        "frames\n    directories: /mnt\n    frames_per_s: 24\n",
        *(9, 19, "`tests[0].frames_per_s`: 24 has no unit", '"24 fps"'),
    ),
    "frames: without a limit and without a number": (
        "frames\n    directories: /mnt\n    frames_per_s: null\n",
        *(6, 5, "write `frames`", None),
    ),
    "placement: of frames, which run nothing on the server": (
        "placement\n    of: {method: frames, directories: /mnt}\n",
        *(8, 9, "`frames` runs no process of a tool on the measured host", None),
    ),
    "stream: the same twice": (
        "stream\n    direction: [forward, reverse, forward]\n",
        *(8, 16, "`tests[0].direction`: `forward` is named twice; write it once, and `runs` to", None),
    ),
    "stream: nothing in a list": (
        "stream\n    write_bytes: []\n",
        *(8, 18, "`tests[0].write_bytes` is empty", None),
    ),
    "request-response: the same size twice": (
        "request-response\n    message_bytes: [1 KiB, 1024 B]\n",
        *(8, 20, "`1024` is named twice", None),
    ),
    "placement: the same loads twice": (
        "placement\n    of: {method: stream}\n    memory_loads: [5, 5]\n",
        *(9, 19, "`5` is named twice", None),
    ),
    "agreement: nearly certain": (
        "agreement\n    confidence: 99.9999 %\n",
        *(8, 17, "it must be at most 99.99 %", None),
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_the_error_points_at_the_place_and_names_the_next_step(name: str, read: Read) -> None:
    text, line, column, message, next_step = WRONG[name]
    with pytest.raises(WrongBenchFileError) as told:
        read(HEAD + text)
    problem = told.value.problems[0]
    assert message in problem.message
    assert (problem.position.line, problem.position.column) == (line, column)
    assert next_step is None or next_step in (problem.next_step or "")


def test_the_defaults_of_each_are_valid(read: Read) -> None:
    for method in ("transfer", "agreement", "request-response"):
        assert read(f"{HEAD}{method}\n").tests[0].method_kind == method


def test_clients_are_tuned_together(read: Read) -> None:
    bench = read(f"{HEAD}stream\ntuning: {{clients: {{mtu: 9000}}}}\n")
    assert [wish.role for wish in bench.tuning] == ["clients"]


def test_a_link_that_a_bond_has_not_does_not_fail(read: Read) -> None:
    text = HEAD.replace("clients}", "clients, bond: {links: 2}}") + "stream\n    failure: {port: s0, link: 2}\n"
    assert read(text).tests
    with pytest.raises(WrongBenchFileError, match="link 3 of s0 is to fail, which has 2"):
        read(text.replace("link: 2}\n", "link: 3}\n"))
