"""Wrong traffic and frame sizes: where the error points and what it says. Cases as in test_wrong_files."""

from __future__ import annotations

import pytest
from tests.bench_file.conftest import Expected, Read, assert_refused

from nicbench.bench_file import WrongBenchFileError

HEAD = "nicbench: 1\ntitle: x\n"
LAB = "lab: {kind: veth}\ndut: {kind: policer}\n"
TESTS = "tests:\n  - {name: t, method: throughput}\n"
PORTS = (
    "hosts: {tester: {kind: local}, d: {kind: netns, namespace: d}}\n"
    "ports: {t0: {host: tester, device: e0}, d0: {host: d, device: e1}}\nlinks: [t0 <-> d0]\ndut: {kind: external}\n"
)

WRONG = {
    "a vlan identifier beyond 12 bits": (
        HEAD + LAB + "traffic: {vlan: [100, 4096]}\n" + TESTS,
        [(5, 23, "`traffic.vlan[1]` is `4096`: it must be at most 4095", "at most 4095")],
    ),
    "a field beyond its bits": (
        HEAD + LAB + "traffic: {fields: {source_port: {first: 65000, count: 600}}}\n" + TESTS,
        [(5, 33, "reaches 65599, and the field has 16 bits", None)],
    ),
    "a field of a header that the frames do not have": (
        HEAD + LAB + "traffic: {fields: {vlan_priority: 3}}\n" + TESTS,
        [(5, 35, "the frames have no tag, so `fields.vlan_priority` has no effect", "`vlan: 100`")],
    ),
    "a field of TCP where UDP is sent, in one of two streams": (
        HEAD
        + LAB
        + "traffic:\n  streams:\n    - {name: a, share: 50 %, fields: {tcp_flags: 2}}\n    - {name: b, share: 50 %}\n"
        + TESTS,
        [(7, 50, "the frames have no TCP", "`protocol: tcp`")],
    ),
    "shares that are not the whole": (
        HEAD + LAB + "traffic: {streams: [{name: a, share: 50 %}, {name: b, share: 40 %}]}\n" + TESTS,
        [(5, 20, "add up to 90 %", None)],
    ),
    "a stream with neither a share nor a rate, and one with both": (
        HEAD + LAB + "traffic: {streams: [{name: a}, {name: b, share: 50 %, rate: 1 kpps}]}\n" + TESTS,
        [(5, 21, "the stream a needs either a `share`", None), (5, 32, "the stream b needs either", None)],
    ),
    "streams of which none takes what is left of the load": (
        HEAD + LAB + "traffic: {streams: [{name: a, rate: 1 kpps}, {name: b, rate: 2 kpps}]}\n" + TESTS,
        [(5, 20, "one at least needs a `share`", None)],
    ),
    "a rate of a stream without its unit": (
        HEAD + LAB + "traffic: {streams: [{name: a, rate: 1000}, {name: b, share: 100 %}]}\n" + TESTS,
        [(5, 37, "1000 has no unit", "200 kpps")],
    ),
    "weights of a mix that have no common divisor": (
        HEAD
        + LAB
        + "traffic: {mixes: {m: [{frame_bytes: 64, weight: 65535}, {frame_bytes: 128, weight: 65536}]}}\n"
        + TESTS,
        [(5, 10, "the weights of the mix m add up to 131071, more than 65536", None)],
    ),
    "no frames at all": (
        HEAD + LAB + "traffic: {frames: 0}\n" + TESTS,
        [(5, 19, "`traffic.frames` is `0`: it must be at least 1", "at least 1")],
    ),
    "a raw frame without a whole Ethernet header": (
        HEAD + LAB + "traffic: {raw_frame: '020000000001'}\n" + TESTS,
        [(5, 22, "6 bytes are no frame: an Ethernet header alone has 14", None)],
    ),
    "headers beside a raw frame": (
        HEAD + LAB + f"traffic: {{raw_frame: '{'00' * 14}', hop_limit: 5}}\n" + TESTS,
        [(5, 54, "a raw frame has headers of its own, so `hop_limit` has no effect", "remove `hop_limit`")],
    ),
    "a size twice, once as a word": (
        HEAD + LAB + "tests:\n  - {name: t, method: throughput, frame_bytes: [minimum, 128, 64]}\n",
        [(6, 63, "64 bytes are given twice among the frame sizes of `t`", "remove one")],
    ),
    "the largest frame of ports that only the machine knows": (
        HEAD + PORTS + "tests:\n  - {name: t, method: throughput, frame_bytes: [64, maximum]}\n",
        [(8, 53, "only the ports themselves know how large", "write the size in bytes")],
    ),
    "a sweep without an end that is known": (
        HEAD
        + PORTS
        + "traffic: {mixes: {all: {step: 64}}}\n"
        + "tests:\n  - {name: t, method: throughput, frame_bytes: [all]}\n",
        [(9, 49, "so `all` has no end", "`mixes: {all: {largest: 1518}}`")],
    ),
    "a sweep that ends before it begins": (
        HEAD + LAB + "traffic: {mixes: {m: {smallest: 512, largest: 128}}}\n" + TESTS,
        [(5, 22, "it begins at 512 bytes and ends before, at 128", None)],
    ),
    "a sweep that ends before the smallest frame": (
        HEAD + LAB + "traffic: {ip: 6, mixes: {m: {largest: 70}}}\n" + TESTS,
        [(5, 25, "a sweep is impossible: it begins at 82 bytes and ends before, at 70", "both of its ends")],
    ),
    "a sweep larger than the lab's frames": (
        HEAD
        + LAB
        + "traffic: {mixes: {m: {largest: 1519}}}\ntests:\n  - {name: t, method: throughput, frame_bytes: [m]}\n",
        [(7, 49, "`m`: 1519 bytes are too many for the lab's MTU of 1500", "raise the lab's `mtu`")],
    ),
    "a frame with a tag that is larger than a full packet": (
        HEAD + LAB + "traffic: {vlan: 100}\ntests:\n  - {name: t, method: throughput, frame_bytes: [1522, 1523]}\n",
        [(7, 55, "1523 bytes are too many for the lab's MTU of 1500: the maximum is 1522", "raise the lab's `mtu`")],
    ),
    "frames with two tags, of which Linux leaves none uncounted": (
        HEAD
        + LAB
        + "traffic: {vlan: [100, 200]}\ntests:\n  - {name: t, method: throughput, frame_bytes: [1518, 1526]}\n",
        [(7, 55, "1526 bytes are too many for the lab's MTU of 1500: the maximum is 1518", "raise the lab's `mtu`")],
    ),
    "an unknown key of a sweep": (
        HEAD + LAB + "traffic: {mixes: {m: {smallest: 64, biggest: 128}}}\n" + TESTS,
        [(5, 37, "unknown key `traffic.mixes.m.biggest`", "known keys: `smallest`, `largest`, `step`")],
    ),
    "an unknown key of a size in a mix, and of a port": (
        HEAD
        + "lab: {kind: simulated}\ndut: {kind: simulated}\n"
        + "traffic: {mixes: {m: [{frame_byte: 64, weight: 1}]}}\n"
        + "ports: {t0: {hosts: x}}\n"
        + TESTS,
        [
            (5, 23, "`traffic.mixes.m[0].frame_bytes` is missing", None),
            (5, 24, "unknown key `traffic.mixes.m[0].frame_byte`", "did you mean `frame_bytes`?"),
            (6, 13, "`ports.t0.host` is missing", None),
            (6, 14, "unknown key `ports.t0.hosts`", "did you mean `host`?"),
        ],
    ),
    "a mix with a name that has a meaning": (
        HEAD + LAB + "traffic: {mixes: {streams: [{frame_bytes: 64, weight: 1}]}}\n" + TESTS,
        [(5, 10, "`streams` has a meaning of its own", None)],
    ),
    "sizes of their own in one stream of two": (
        HEAD
        + LAB
        + "traffic: {streams: [{name: a, share: 50 %, frame_bytes: 64}, {name: b, share: 50 %}]}\n"
        + "tests:\n  - {name: t, method: throughput, frame_bytes: [streams]}\n",
        [(7, 49, "not every stream has both", "give each stream `share` and `frame_bytes`")],
    ),
    "a test that sends other sizes than the streams have": (
        HEAD
        + LAB
        + "traffic: {streams: [{name: a, share: 100 %, frame_bytes: 64}]}\n"
        + "tests:\n  - {name: t, method: throughput, frame_bytes: [128, 256]}\n",
        [(7, 49, "the streams have frame sizes of their own", "`frame_bytes: [streams]`")],
    ),
    "a stream with a mix that does not exist, and one too small for its headers": (
        HEAD
        + LAB
        + "traffic: {streams: [{name: a, share: 50 %, frame_bytes: imx}, {name: b, share: 50 %, frame_bytes: 64}]}\n"
        + "tests:\n  - {name: t, method: throughput, frame_bytes: [64]}\n",
        [
            (5, 57, "there is no mix of sizes called `imx` for a stream", "did you mean `imix`?"),
            (7, 49, "the streams have frame sizes of their own", "`frame_bytes: [streams]`"),
        ],
    ),
    "a size of a stream's own that is too small for its headers": (
        HEAD
        + LAB
        + "traffic: {streams: [{name: a, share: 50 %, frame_bytes: 66, vlan: 7}, "
        + "{name: b, share: 50 %, protocol: tcp, frame_bytes: 70}]}\n"
        + "tests:\n  - {name: t, method: throughput, frame_bytes: [streams]}\n",
        [(7, 49, "`streams`: 70 bytes are too few for IPv4, TCP and a signature: the minimum is 74 bytes", "74")],
    ),
    "sizes of streams' own beside a rate": (
        HEAD
        + LAB
        + "traffic: {streams: [{name: a, share: 100 %, frame_bytes: 64}, {name: b, rate: 1 kpps, frame_bytes: 64}]}\n"
        + "tests:\n  - {name: t, method: throughput, frame_bytes: [streams]}\n",
        [
            (5, 58, "would change with the load", "give all streams a `share`"),
            (5, 100, "would change with the load", "give all streams a `share`"),
            (7, 49, "not every stream has both", None),
        ],
    ),
    "headers beside a capture": (
        HEAD + LAB + "traffic: {pcap: x.pcap, vlan: 5}\n" + TESTS,
        [(5, 25, "the frames of a capture have headers of their own", "remove `vlan`")],
    ),
    "an offset without a capture": (
        HEAD + LAB + "traffic: {signature_offset: 42}\n" + TESTS,
        [(5, 29, "there is no capture", "`pcap: FILE`")],
    ),
    "raw bytes that are none": (
        HEAD + LAB + "traffic: {raw: abc}\n" + TESTS,
        [(5, 16, "these are no bytes", None)],
    ),
    "an unknown key of the traffic": (
        HEAD + LAB + "traffic: {vlans: 5}\n" + TESTS,
        [(5, 11, "unknown key `traffic.vlans`", "did you mean `vlan`?")],
    ),
    "an unknown mix": (
        HEAD + LAB + "tests:\n  - {name: t, method: throughput, frame_bytes: [64, imx]}\n",
        [(6, 53, "there is no mix of sizes called `imx`", "did you mean `imix`?")],
    ),
    "a mix with a size too small for its headers": (
        HEAD + LAB + "traffic: {protocol: tcp}\ntests:\n  - {name: t, method: throughput, frame_bytes: [imix]}\n",
        [(7, 49, "`imix`: 64 bytes are too few for IPv4, TCP and a signature: the minimum is 74 bytes", "74")],
    ),
    "a frame too small for two tags": (
        HEAD + LAB + "traffic: {vlan: [1, 2]}\ntests:\n  - {name: t, method: throughput, frame_bytes: [64]}\n",
        [(7, 49, "too few for 802.1ad, 802.1Q, IPv4, UDP and a signature: the minimum is 70 bytes", "70")],
    ),
}


@pytest.mark.parametrize(("text", "expected"), WRONG.values(), ids=WRONG.keys())
def test_a_wrong_file_is_refused_with_place_message_and_next_step(text: str, expected: list[Expected]) -> None:
    assert_refused(text, *expected)


TUNNELS_HEAD = "nicbench: 1\ntitle: x\nlab: {kind: veth}\ndut: {kind: bridge}\n"
TUNNELS_TESTS = "tests:\n  - {name: t, method: throughput, frame_bytes: [256]}\n"
ENDS = "source: 192.0.2.1, destination: 192.0.2.2"

WRONG_TUNNELS = {
    "an unknown tunnel": ("{tunnels: [{kind: gree}]}", 5, 21, "there is no kind `gree`", "`gre`"),
    "a tunnel without its kind": ("{tunnels: [{vni: 3}]}", 5, 21, "has no kind", "kind"),
    "a key of another tunnel": (
        "{tunnels: [{kind: mpls, label: 5, vni: 3}]}", 5, 44, "unknown key `traffic.tunnels[0].vni`", "label"
    ),
    "a label beyond 20 bits": (
        "{tunnels: [{kind: mpls, label: {first: 1048570, count: 7}}]}", 5, 41, "reaches 1048576", None
    ),
    "one end of a tunnel": ("{tunnels: [{kind: gre, source: 192.0.2.1}]}", 5, 21, "go together", None),
    "ends of two versions": (
        "{tunnels: [{kind: ip, source: 192.0.2.1, destination: '2001:db8::1'}]}", 5, 21, "both IPv4 or both", None
    ),
    "an end of a word": ("{tunnels: [{kind: ip, source: x, destination: 192.0.2.1}]}", 5, 40, "no IP address", None),
    "PPPoE within IP": (
        f"{{tunnels: [{{kind: ip, {ENDS}}}, {{kind: pppoe, session: 1}}]}}", 5, 20, "PPPoE stands behind Ethernet", None
    ),
    "more segments left than there are": (
        "{tunnels: [{kind: srv6, segments: ['fc00::1'], segments_left: 1}]}", 5, 21, "at most 0", None
    ),
    "a tunnel that the DUT begins without ends": (
        "{arrives: [{kind: gre}]}", 5, 21, "the addresses of the GRE header", "`source`"
    ),
    "both ways of writing VXLAN": (
        f"{{vxlan: {{vni: 5}}, tunnels: [{{kind: gre, {ENDS}}}]}}", 5, 18, "short for one tunnel", "{kind: vxlan"
    ),
    "tunnels around a capture": (
        "{pcap: a.pcap, tunnels: [{kind: pppoe, session: 1}]}", 5, 25, "headers of their own", "`tunnels`"
    ),
    "no signature without a raw frame": ("{signature: false}", 5, 22, "there is neither", "`raw_frame`"),
    "a filter of frames with a signature": (
        "{raw_frame: '0200000000020200000000010800', filter: [{at: 12, hex: '0800'}]}", 5, 62, "have one", "`signature"
    ),
    "a mask of another length": (
        "{raw_frame: '0200000000020200000000010800', signature: false, filter: [{at: 1, hex: '0800', mask: 'ff'}]}",
        5, 81, "a mask of as many", None,
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("traffic", "line", "column", "message", "next_step"), WRONG_TUNNELS.values(), ids=WRONG_TUNNELS.keys()
)
def test_it_is_refused_with_place_message_and_next_step(
    traffic: str, line: int, column: int, message: str, next_step: str | None
) -> None:
    assert_refused(TUNNELS_HEAD + f"traffic: {traffic}\n" + TUNNELS_TESTS, (line, column, message, next_step))


@pytest.mark.parametrize(
    ("size", "traffic", "message"),
    [
        (89, f"{{tunnels: [{{kind: gre, key: 7, {ENDS}}}]}}", "GRE, IPv4, UDP and a signature: the minimum is 90"),
        (91, f"{{tunnels: [{{kind: gre, key: 7, {ENDS}}}], arrives: []}}", "the minimum is 92"),
        (1518, f"{{arrives: [{{kind: gre, {ENDS}}}]}}", "frames of 1518 bytes come back with 1542"),
    ],
)
def test_a_size_that_does_not_fit_is_refused_at_its_place(size: int, traffic: str, message: str) -> None:
    tests = f"tests:\n  - {{name: t, method: throughput, frame_bytes: [{size}]}}\n"
    assert_refused(TUNNELS_HEAD + f"traffic: {traffic}\n" + tests, (7, 49, message, None))


GOOD = """nicbench: 1
title: x
hosts: {tester: {kind: local}, far: {kind: ssh, address: 10.0.0.6}, dut: {kind: ssh, address: 10.0.0.7}}
ports:
  t0: {host: tester, device: e0}
  t1: {host: far, device: e0}
  d0: {host: dut, device: e0}
  d1: {host: dut, device: e1}
links: [t0 <-> d0, t1 <-> d1]
dut: {kind: bridge}
tester: {peer: far}
tests: [{name: t, method: throughput}]
"""
PORT = "t1: {host: far, device: e0}"

WRONG_PEERS = {
    "a host that does not exist": (
        "{peer: far}",
        "{peer: fat}",
        (11, 16, "there is no host `fat`", "did you mean `far`?"),
    ),
    "the machine itself": (
        "{peer: far}",
        "{peer: tester}",
        (11, 16, "second machine is its first one", "remove `peer`"),
    ),
    "a machine without ports": (
        PORT,
        "t1: {host: tester, device: e9}",
        (11, 16, "no port belongs to the tester's second machine `far`", "`host: far`"),
    ),
    "a driver that makes frames in the kernel": (
        "{peer: far}",
        "{peer: far, driver: xdp}",
        (11, 9, "with `peer` the driver is `net_af_xdp`", ""),
    ),
    "a driver of a port that makes frames in the kernel": (
        PORT,
        "t1: {host: far, device: e0, driver: xdp}",
        (6, 39, "two machines cannot share a trial with `driver: xdp`", "net_af_xdp"),
    ),
    "workers": (
        "{peer: far}",
        "{peer: far, workers: [{cpu: 1, transmit: [t0], receive: [t0]}]}",
        (11, 9, "one worker on each machine: remove `workers`", ""),
    ),
    "time stamps of cards": ("{peer: far}", "{peer: far, timestamps: card}", (11, 9, "stamped by `tsc`", "")),
    "a wrong clock of nobody": ("{peer: far}", "{peer_clock: {ahead: 1 ms}}", (11, 9, "add `peer`, or remove it", "")),
}


def test_ports_of_both_machines_are_the_testers(read: Read) -> None:
    bench = read(GOOD)
    assert bench.tester_kind().peer == "far"
    assert bench.role_of("far") == "tester"


@pytest.mark.parametrize(("old", "new", "expected"), WRONG_PEERS.values(), ids=WRONG_PEERS.keys())
def test_a_wrong_second_machine_is_refused_with_place_message_and_next_step(
    read: Read, old: str, new: str, expected: tuple[int, int, str, str]
) -> None:
    with pytest.raises(WrongBenchFileError) as caught:
        read(GOOD.replace(old, new))
    line, column, message, step = expected
    problem = next(one for one in caught.value.problems if message in one.message)
    assert (problem.position.line, problem.position.column) == (line, column)
    assert step in (problem.next_step or "")


def test_a_lab_has_no_second_machine(read: Read) -> None:
    text = "nicbench: 1\ntitle: x\nlab: {kind: veth}\ndut: {kind: bridge}\ntester: {peer: far}\n"
    with pytest.raises(WrongBenchFileError, match="a lab makes a tester on one machine"):
        read(text + "tests: [{name: t, method: throughput}]\n")


REST = """\
tests: [{name: a, method: throughput, frame_bytes: [64]}]
"""
TUNING_HEAD = "nicbench: 1\ntitle: t\nlab: {kind: veth}\ndut: {kind: kernel-forward}\n"


def problems(read: Read, tuning: str, head: str = TUNING_HEAD) -> str:
    with pytest.raises(WrongBenchFileError) as caught:
        read(head + tuning + REST)
    return str(caught.value)


def test_items_are_given_by_host(read: Read) -> None:
    bench = read(TUNING_HEAD + "tuning:\n  dut: {sysctls: {net.core.busy_poll: 50}}\n" + REST)
    (wish,) = bench.tuning
    assert (wish.role, wish.item.kind, wish.source) == ("dut", "sysctls", "bench file")
    assert wish.options.model_dump() == {"values": {"net.core.busy_poll": 50}}


@pytest.mark.parametrize(
    ("tuning", "said"),
    [
        ("tuning: 3\n", "b.yaml:5:9: `tuning` must be keys and values"),
        ("tuning:\n  dtu: {}\n", "b.yaml:6:3: unknown host `dtu`\n  next: did you mean `dut`?"),
        (
            "tuning:\n  dut: {sysctl: {}}\n",
            "b.yaml:6:9: unknown tuning item `sysctl`\n  next: did you mean `sysctls`?",
        ),
        ("tuning:\n  dut: {sysctls: 3}\n", "b.yaml:6:18: `tuning.dut.sysctls` must be keys and values, not `3`"),
        ("tuning:\n  dut: {sysctls: {../x: 1}}\n", "b.yaml:6:25: `tuning.dut.sysctls.../x` cannot be `../x`"),
        (
            "tuning:\n  dut: {sysctls: {kernel.//.//.//.tmp.x: 1}}\n",
            "b.yaml:6:42: `tuning.dut.sysctls.kernel.//.//.//.tmp.x` cannot be `kernel.//.//.//.tmp.x`",
        ),
        ("tuning:\n  dut: {mtu: {bytes: 90, devices: [../e0]}}\n", "`tuning.dut.mtu.devices[0]` cannot be `../e0`"),
        ("tuning:\n  dut: {mtu: {bytes: 90, devices: [--all]}}\n", "`tuning.dut.mtu.devices[0]` cannot be `--all`"),
        ("tuning:\n  dut: {mtu: {bytes: 90, devices: ['']}}\n", "`tuning.dut.mtu.devices[0]` cannot be ``"),
        ("tuning: {profile: fast}\n", "b.yaml:5:19: unknown tuning profile `fast`"),
    ],
    ids=[
        *("no mapping", "unknown host", "unknown item", "wrong options", "wrong name", "a way out of /proc/sys"),
        *("a way out of /sys/class/net", "an option of a tool", "no interface", "unknown profile"),
    ],
)
def test_what_is_wrong_is_told_with_line_and_column(read: Read, tuning: str, said: str) -> None:
    assert said in problems(read, tuning)


def test_a_simulated_lab_has_no_machine(read: Read) -> None:
    head = "nicbench: 1\ntitle: t\nlab: simulated\ndut: simulated\n"
    said = problems(read, "tuning: {dut: {sysctls: {vm.swappiness: 1}}}\n", head)
    assert "b.yaml:5:1: the simulated lab has no machine to be tuned" in said


def test_a_dut_without_a_host_cannot_be_tuned(read: Read) -> None:
    head = (
        "nicbench: 1\ntitle: t\nhosts: {tester: local, hypervisor: local}\nports: {t0: {host: tester, device: e0}}\n"
        "dut: {kind: external}\n"
    )
    said = problems(read, "tuning: {dut: {sysctls: {vm.swappiness: 1}}, hypervisor: {turbo: false}}\n", head)
    assert "the host `dut` is not part of the tests, so it cannot be tuned" in said
    assert "the host `hypervisor`" not in said


def test_configurations_differ_in_one_setting(read: Read) -> None:
    text = "tuning: {dut: {sysctls: {vm.swappiness: 1, net.core.busy_poll: 50}}}\n"
    over = "configurations:\n  one: {}\n  other: {tuning: {dut: {sysctls: {vm.swappiness: 2}}}}\n"
    bench = read(TUNING_HEAD + text + over + REST)
    found = [each.tuning[0].options.model_dump()["values"] for each in bench.configurations]
    assert found == [
        {"vm.swappiness": 1, "net.core.busy_poll": 50},
        {"vm.swappiness": 2, "net.core.busy_poll": 50},
    ]
