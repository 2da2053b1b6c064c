"""Wrong tunnels, and frames without a signature: where the error points and what it says."""

from collections.abc import Callable

import pytest

from nicbench.bench_file import BenchFile, WrongBenchFileError

Read = Callable[[str], BenchFile]
HEAD = "nicbench: 1\ntitle: x\nlab: {kind: veth}\ndut: {kind: bridge}\n"
TESTS = "tests:\n  - {name: t, method: throughput, frame_bytes: [256]}\n"
ENDS = "source: 192.0.2.1, destination: 192.0.2.2"

WRONG: dict[str, tuple[str, int, int, str, str | None]] = {
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


@pytest.mark.parametrize(("traffic", "line", "column", "message", "next_step"), WRONG.values(), ids=WRONG.keys())
def test_it_is_refused_with_place_message_and_next_step(
    traffic: str, line: int, column: int, message: str, next_step: str | None, read: Read
) -> None:
    with pytest.raises(WrongBenchFileError) as refused:
        read(HEAD + f"traffic: {traffic}\n" + TESTS)
    (problem,) = refused.value.problems
    assert (problem.position.line, problem.position.column) == (line, column)
    assert message in problem.message
    assert next_step is None or next_step in (problem.next_step or "")


@pytest.mark.parametrize(
    ("size", "traffic", "message"),
    [
        (89, f"{{tunnels: [{{kind: gre, key: 7, {ENDS}}}]}}", "GRE, IPv4, UDP and a signature: the minimum is 90"),
        (91, f"{{tunnels: [{{kind: gre, key: 7, {ENDS}}}], arrives: []}}", "the minimum is 92"),
        (1518, f"{{arrives: [{{kind: gre, {ENDS}}}]}}", "frames of 1518 bytes come back with 1542"),
    ],
)
def test_a_size_that_does_not_fit_is_refused_at_its_place(size: int, traffic: str, message: str, read: Read) -> None:
    tests = f"tests:\n  - {{name: t, method: throughput, frame_bytes: [{size}]}}\n"
    with pytest.raises(WrongBenchFileError) as refused:
        read(HEAD + f"traffic: {traffic}\n" + tests)
    (problem,) = refused.value.problems
    assert (problem.position.line, problem.position.column) == (7, 49)
    assert message in problem.message
