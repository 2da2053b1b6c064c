"""Wrong traffic and frame sizes: where the error points and what it says. Cases as in test_wrong_files."""

from collections.abc import Callable

import pytest

from nicbench.bench_file import BenchFile, WrongBenchFileError

Read = Callable[[str], BenchFile]
Expected = tuple[int, int, str, str | None]

HEAD = "nicbench: 1\ntitle: x\n"
LAB = "lab: {kind: veth}\ndut: {kind: policer}\n"
TESTS = "tests:\n  - {name: t, method: throughput}\n"
PORTS = (
    "hosts: {tester: {kind: local}, d: {kind: netns, namespace: d}}\n"
    "ports: {t0: {host: tester, device: e0}, d0: {host: d, device: e1}}\nlinks: [t0 <-> d0]\ndut: {kind: external}\n"
)

WRONG: dict[str, tuple[str, list[Expected]]] = {
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
def test_a_wrong_file_is_refused_with_place_message_and_next_step(
    text: str, expected: list[Expected], read: Read
) -> None:
    with pytest.raises(WrongBenchFileError) as refused:
        read(text)
    found = refused.value.problems
    assert [(problem.position.line, problem.position.column) for problem in found] == [
        (line, column) for line, column, _, _ in expected
    ]
    for problem, (_, _, message, next_step) in zip(found, expected, strict=True):
        assert message in problem.message
        assert next_step is None or next_step in (problem.next_step or "")
