"""Tests of workloads that DUT, ports or tools cannot do: refused before anything is touched, with place and way out."""

from __future__ import annotations

import pytest
from tests.bench_file.conftest import Read, assert_refused

from nicbench.bench_file import WrongBenchFileError

HEAD = "nicbench: 1\ntitle: x\n"
LAB = "lab: {kind: clients, ports: 2, clients_per_port: 2}\n"

BY_HAND = (
    "hosts: {server: local, peer: {kind: ssh, address: 192.0.2.1}}\ndut: {kind: server}\nlinks: [c0 <-> s0]\n"
    "tests: [{name: t, method: stream}]\n"
)

WRONG = {
    "forwarding by a host that forwards nothing": (
        LAB + "dut: {kind: server}\ntests:\n  - {name: t, method: forwarding}\n",
        (6, 23),
        "sends through the DUT, and `server` does not forward",
        "router",
    ),
    "forwarding between the ports of a lab with one": (
        "lab: {kind: clients}\ndut: {kind: router}\ntests:\n  - {name: t, method: forwarding}\n",
        (6, 23),
        "needs 2 ports, and there is 1",
        "ports: 2",
    ),
    "forwarding by a tool that there is not": (
        LAB + "dut: {kind: router}\ntests:\n  - {name: t, method: forwarding, workload: iperf33}\n",
        (6, 45),
        "unknown workload `iperf33`",
        "iperf3",
    ),
    "a way to send on which the tool depends": (
        LAB + "dut: {kind: router}\ntests:\n  - {name: t, method: collective, transport: roce}\n",
        (6, 46),
        "`tests[0].transport` cannot be `roce`",
        "'tcp' or 'rdma'",
    ),
    "a placement of a test that sends frames": (
        LAB + "dut: {kind: server}\ntests:\n  - {name: t, method: placement, of: {method: throughput}}\n",
        (6, 38),
        "`of` needs a `method`",
        "",
    ),
    "a folder of a host that there is not": (
        LAB + "dut: {kind: server}\ntests:\n  - name: t\n    method: transfer\n    source: {c0: /mnt/data}\n",
        (8, 14),
        "there is no host `c0`",
        "did you mean `c0",
    ),
    "incast to a port that there is not": (
        LAB + "dut: {kind: server}\ntests:\n  - {name: t, method: incast, receiver: s9}\n",
        (6, 31),
        "the measured host has no port `s9`",
        "`s0`, `s1`",
    ),
    "incast of more senders than there are": (
        LAB + "dut: {kind: server}\ntests:\n  - {name: t, method: placement, of: {method: incast, senders: 3}}\n",
        (6, 55),
        "3 clients are to send to `s0`, and it has 2",
        "clients_per_port",
    ),
    "incast of one sender": (
        BY_HAND.replace("stream", "incast")
        + "ports:\n  s0: {host: server, device: e0}\n  c0: {host: peer, device: e1}\n",
        (6, 19),
        "2 clients are to send to `s0`, and it has 1",
        "link more clients",
    ),
    "an interface that cannot be": (
        BY_HAND + "ports:\n  s0: {host: server, device: e0}\n  c0: {host: peer, device: a/b}\n",
        (9, 28),
        "`a/b` cannot be the name of an interface",
        "as `ip link` shows them",
    ),
    "an address that no other host reaches": (
        BY_HAND + "ports:\n  s0: {host: server, device: e0}\n  c0: {host: peer, device: e1, ip: 127.0.0.1}\n",
        (9, 36),
        "`127.0.0.1` is a loopback address",
        "remove `ip`",
    ),
    "an address that two ports have": (
        BY_HAND + "ports:\n  s0: {host: server, device: e0, ip: 192.0.2.2}\n"
        "  c0: {host: peer, device: e1, ip: 192.0.2.2}\n",
        (9, 36),
        "both have the address `192.0.2.2`",
        "an address of its own",
    ),
    "an interface that two ports have": (
        BY_HAND.replace("[c0 <-> s0]", "[c0 <-> s0, c1 <-> s0]")
        + "ports:\n  s0: {host: server, device: e0}\n  c0: {host: peer, device: e1}\n"
        "  c1: {host: peer, device: e1}\n",
        (10, 28),
        "are both the interface `e1`",
        "of its own",
    ),
}


@pytest.mark.parametrize(("text", "place", "message", "step"), WRONG.values(), ids=WRONG.keys())
def test_what_cannot_be_is_refused(text: str, place: tuple[int, int], message: str, step: str) -> None:
    assert_refused(HEAD + text, (*place, message, step))


ROUNDS_HEAD = "nicbench: 1\ntitle: x\nlab: {kind: clients}\ndut: {kind: server}\ntests:\n  - name: t\n    method: "

WRONG_ROUNDS = {
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


@pytest.mark.parametrize("name", WRONG_ROUNDS)
def test_the_error_points_at_the_place_and_names_the_next_step(name: str) -> None:
    text, *expected = WRONG_ROUNDS[name]
    assert_refused(ROUNDS_HEAD + text, tuple(expected), and_more=True)


def test_the_defaults_of_each_are_valid(read: Read) -> None:
    for method in ("transfer", "agreement", "request-response"):
        assert read(f"{ROUNDS_HEAD}{method}\n").tests[0].method_kind == method


def test_clients_are_tuned_together(read: Read) -> None:
    bench = read(f"{ROUNDS_HEAD}stream\ntuning: {{clients: {{mtu: 9000}}}}\n")
    assert [wish.role for wish in bench.tuning] == ["clients"]


def test_a_link_that_a_bond_has_not_does_not_fail(read: Read) -> None:
    text = ROUNDS_HEAD.replace("clients}", "clients, bond: {links: 2}}") + "stream\n    failure: {port: s0, link: 2}\n"
    assert read(text).tests
    with pytest.raises(WrongBenchFileError, match="link 3 of s0 is to fail, which has 2"):
        read(text.replace("link: 2}\n", "link: 3}\n"))


REST = "tests: [{name: t, method: frames}]\n"
SHARES_HEAD = "nicbench: 1\ntitle: x\nlab: {kind: clients}\ndut:\n  kind: file-server\n"

WRONG_SHARES = {
    "no kind of share": ("  memory: 1 GiB\n", 5, 3, "`dut.share` is missing", "add `share: sftp`"),
    "a kind that there is not": (
        "  share: sfpt\n  memory: 1 GiB\n",
        *(6, 10, "unknown dut.share kind `sfpt`", "did you mean `sftp`?"),
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


@pytest.mark.parametrize("name", WRONG_SHARES)
def test_the_error_points_at_the_place_and_names_the_next_step_of_shares(name: str) -> None:
    text, *expected = WRONG_SHARES[name]
    assert_refused(SHARES_HEAD + text + REST, tuple(expected), and_more=True)


def test_a_lab_whose_namespaces_are_reached_by_ssh_keeps_no_mounts(read: Read) -> None:
    with pytest.raises(WrongBenchFileError, match="reached by `ssh`"):
        read(SHARES_HEAD.replace("clients}", "clients, reached_by: ssh}") + "  share: sftp\n  memory: 1 GiB\n" + REST)


def test_folders_of_the_user_and_memory_are_both_valid(read: Read) -> None:
    for where in ("memory: 1 GiB\n  shares: 12", 'folder: "/stor/d{share}"\n  shares: 12'):
        bench = read(f"{SHARES_HEAD}  share: sftp\n  {where}\n{REST}")
        assert bench.dut.kind == "file-server"
