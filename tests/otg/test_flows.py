"""Rates, sizes, durations, payloads and what a flow is counted by."""

from __future__ import annotations

from typing import Any

import pytest

from nicbench.engine.generator import FlowTagged
from nicbench.otg.configuration import read_configuration
from nicbench.otg.counters import tagged_metrics
from nicbench.otg.model import OtgError

from .frames import PORTS, SERVED, flow, frame_of, header, program_of

UDP = [header("ethernet"), header("ipv4", src="1.1.1.1", dst=["2.2.2.2", "2.2.2.3"]), header("udp", src_port=5)]
_48 = {"bytes": "00" * 46}
TCP = [header("ethernet"), header("ipv4"), header("tcp", dst_port=80)]


@pytest.mark.parametrize(
    ("rate", "frames_per_s"),
    [
        ({}, 1000),
        ({"choice": "pps", "pps": 17}, 17),
        ({"choice": "bps", "bps": 672}, 1),
        ({"choice": "kbps", "kbps": 672}, 1000),
        ({"choice": "mbps", "mbps": 672}, 1e6),
        ({"choice": "gbps", "gbps": 1}, 1e9 / 672),
        ({"choice": "percentage", "percentage": 50}, 5e9 / 672),
    ],
)
def test_rates_are_those_of_the_line(rate: dict[str, Any], frames_per_s: float) -> None:
    assert program_of(UDP, rate=rate, size={"fixed": 64})["rate_frames_per_s"] == pytest.approx(frames_per_s)


def test_a_gap_between_frames_bounds_the_rate() -> None:
    duration = {"choice": "continuous", "continuous": {"gap": 64 + 8 + 12 + 40}}
    program = program_of(UDP, rate={"choice": "percentage", "percentage": 100}, duration=duration)
    assert program["rate_frames_per_s"] == pytest.approx(10e9 / 8 / (64 + 8 + 124))


@pytest.mark.parametrize(
    ("size", "program"),
    [
        (None, {"fixed": 64}),
        (
            {"choice": "increment", "increment": {"start": 64, "end": 100, "step": 10}},
            {"from": 64, "to": 94, "step": 10},
        ),
        ({"choice": "random", "random": {"min": 64, "max": 80}}, {"random": {"from": 64, "to": 80, "seed": 1}}),
        (
            {"choice": "weight_pairs", "weight_pairs": {"custom": [{"size": 64, "weight": 2.5}, {"size": 128}]}},
            {"weighted": [{"frame_bytes": 64, "weight": 250}, {"frame_bytes": 128, "weight": 100}], "seed": 1},
        ),
        (
            {"choice": "weight_pairs", "weight_pairs": {}},
            {
                "weighted": [
                    {"frame_bytes": 64, "weight": 700},
                    {"frame_bytes": 570, "weight": 400},
                    {"frame_bytes": 1518, "weight": 100},
                ],
                "seed": 1,
            },
        ),
    ],
)
def test_sizes(size: dict[str, Any] | None, program: dict[str, Any]) -> None:
    assert program_of(UDP, **({} if size is None else {"size": size}))["sizes"] == program


def test_frames_are_as_large_as_their_headers_where_no_size_is_given() -> None:
    packet = [*UDP, header("vxlan"), header("ethernet"), header("ipv6")]
    assert program_of(packet)["sizes"] == {"fixed": 14 + 20 + 8 + 8 + 14 + 40 + 4 + 4}  # the inner frame has an FCS too
    with pytest.raises(
        OtgError, match=r"flows\[0\].size.fixed: 100 bytes have no room for the headers, which need 112"
    ):
        program_of(packet, size={"fixed": 100})


def test_durations() -> None:
    packets = {"choice": "fixed_packets", "fixed_packets": {"packets": 7, "delay": {"nanoseconds": 500.0}}}
    program = program_of(UDP, duration=packets)
    assert (program["frames"], program["delay_s"], program["exact"]) == (7, 5e-7, True)
    seconds = program_of(UDP, duration={"choice": "fixed_seconds", "fixed_seconds": {"seconds": 2.5}})
    assert (seconds["duration_s"], seconds["frames"], seconds["exact"]) == (2.5, None, True)
    assert program_of(UDP)["exact"] is False
    burst = {"bursts": 3, "packets": 10, "inter_burst_gap": {"choice": "microseconds", "microseconds": 20.0}}
    program = program_of(UDP, duration={"choice": "burst", "burst": burst})
    assert (program["bursts"], program["burst"]["packets"], program["burst"]["gap_between_bursts_s"]) == (3, 10, 2e-5)
    gap = {"packets": 2, "inter_burst_gap": {"choice": "bytes", "bytes": 1250.0}}
    assert program_of(UDP, duration={"choice": "burst", "burst": gap})["burst"]["gap_between_bursts_s"] == 1e-6


@pytest.mark.parametrize(
    ("payload", "start"),
    [
        ({}, "00000000"),
        ({"choice": "increment_byte"}, "00010203"),
        ({"choice": "decrement_byte"}, "fffefdfc"),
        ({"choice": "increment_word"}, "00000001"),
        ({"choice": "decrement_word"}, "fffffffe"),
        ({"choice": "fixed", "fixed": {"pattern": "abc0", "repeat": True}}, "abc0abc0"),
        ({"choice": "fixed", "fixed": {"pattern": "abcd", "repeat": False}}, "abcd0000"),
    ],
)
def test_payloads(payload: dict[str, Any], start: str) -> None:
    frame = frame_of(program_of(UDP, payload=payload, size={"fixed": 700}), 0)
    assert len(frame) == 696
    assert frame[42:46].hex() == start


def test_a_flow_has_a_signature_where_its_metrics_are_on_and_frames_have_room() -> None:
    on = {"enable": True}
    assert program_of(UDP, metrics=on)["signature"] is True
    assert program_of(UDP)["signature"] is False
    tcp = program_of(TCP, metrics=on, size={"fixed": 64})
    assert tcp["signature"] is False
    told = [(field["bit_offset"], field["bits"]) for field in tcp["match"]["fields"]]
    assert told == [(184, 8), (208, 32), (240, 32), (272, 16), (288, 16)]
    with pytest.raises(OtgError, match=r"metrics.latency: is taken from 16 bytes"):
        program_of(TCP, metrics={"enable": True, "latency": {"enable": True}}, size={"fixed": 64})


def test_frames_of_counted_flows_are_marked_behind_their_headers_where_they_have_room() -> None:
    mark = "877367494287118008711805"
    on = {"enable": True}
    assert program_of(UDP, metrics=on, size={"fixed": 128})["template"].endswith(mark)
    assert frame_of(program_of(UDP, metrics=on, size={"fixed": 128}), 0)[42:54].hex() == mark
    assert mark not in program_of(UDP, metrics=on, size={"fixed": 64})["template"]
    assert mark not in program_of(UDP, size={"fixed": 128})["template"]


def test_frames_of_no_given_size_have_room_for_a_signature_and_are_told_apart_by_it() -> None:
    """Two questions of DNS differ behind UDP alone: by their headers they are one flow."""
    question = "0100000100000000000003616263000001" + "0001"
    flows = [
        flow([*UDP, {"choice": "custom", "custom": {"bytes": f"{number:04x}{question}"}}], metrics={"enable": True})
        | {"name": f"q{number}"}
        for number in range(2)
    ]
    read = read_configuration({"ports": PORTS, "flows": flows}, SERVED, seed=1).flows
    assert [each.counted for each in read] == ["signature", "signature"]
    assert {each.mean_frame_bytes for each in read} == {42 + 21 + 16 + 4}


def test_frames_without_network_addresses_are_told_by_their_mac_addresses() -> None:
    packet = [header("ethernet", src=["00:00:00:00:00:01", "00:00:00:00:00:02"]), {"choice": "custom", "custom": _48}]
    match = program_of(packet, metrics={"enable": True}, size={"fixed": 64})["match"]
    assert [(field["bit_offset"], field["bits"]) for field in match["fields"]] == [(0, 48), (48, 48), (96, 16)]
    assert match["fields"][1]["values"] == {"list": [1, 2]}


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"size": {"fixed": 63}}, "size.fixed: 63 bytes are below"),
        ({"size": {"fixed": 9217}}, "size.fixed: 9217 bytes are above"),
        ({"size": {"choice": "random", "random": {"min": 100, "max": 99}}}, "size.random: max is below min"),
        ({"rate": {"choice": "percentage", "percentage": 0}}, "rate.percentage: is 0 frames/s"),
        ({"metrics": {"enable": True, "rx_tx_ratio": {"choice": "rx_count"}}}, "metrics.rx_tx_ratio: every frame"),
        (
            {"egress_packet": [header("ipv4", src={"metric_tags": [{"name": "t"}]})]},
            "metrics.enable: frames are counted by metric_tags",
        ),
        ({"payload": {"choice": "fixed", "fixed": {"pattern": "abc"}}}, "payload.fixed.pattern: is no even"),
    ],
)
def test_refusals_have_the_path_of_the_field(members: dict[str, Any], message: str) -> None:
    with pytest.raises(OtgError) as refused:
        program_of(UDP, **members)
    assert f"config.flows[0].{message}" in refused.value.errors[0]


def test_tags_are_fields_of_frames_as_they_are_received() -> None:
    tags = [{"name": "dscp", "length": 6}, {"name": "ecn", "offset": 6, "length": 2}]
    raw = {"choice": "raw", "raw": {"choice": "value", "value": 0, "metric_tags": tags}}
    received = [header("ethernet"), header("vlan", id={"metric_tags": [{"name": "vlan"}]}), header("ipv4")]
    received[2]["ipv4"]["priority"] = raw
    config = {"ports": PORTS, "flows": [flow(UDP, metrics={"enable": True}, egress_packet=received)]}
    (made,) = read_configuration(config, SERVED, seed=1).flows
    assert made.tags == ("vlan", "dscp", "ecn")
    assert [tuple(tag.values()) for tag in made.program["tags"]] == [(116, 12), (152, 6), (158, 2)]
    counted = [FlowTagged(values=("065", "2e", "1"), frames=3, bytes=300, first_ns=1, last_ns=2)]
    told = tagged_metrics(made, counted, {}, ["frames_rx"])
    values = [
        {"name": name, "value": {"choice": "hex", "hex": value}}
        for name, value in zip(made.tags, ("065", "2e", "1"), strict=True)
    ]
    assert told == [{"tags": values, "frames_rx": 3}]
    assert not tagged_metrics(made, counted, {"ecn": ["0x2"]}, ())
    assert len(tagged_metrics(made, counted, {"vlan": ["65"], "ecn": []}, ())) == 1
    assert not tagged_metrics(made, counted, {"other": []}, ())


def weighted(*pairs: tuple[int, float]) -> dict[str, Any]:
    custom = [{"size": size, "weight": weight} for size, weight in pairs]
    return {"choice": "weight_pairs", "weight_pairs": {"choice": "custom", "custom": custom}}


@pytest.mark.parametrize(
    ("pairs", "parts"),
    [
        (((64, 1), (64, 2), (128, 1)), {64: 300, 128: 100}),
        (((64, 1), (128, 0)), {64: 100}),
        (((64, 0.999), (1518, 0.001)), {64: 65_470, 1518: 66}),
        (((64, 1000.01), (1518, 1)), {64: 65_471, 1518: 65}),
        (((64, 0.58333), (570, 0.33333), (1518, 0.08334)), {64: 38_229, 570: 21_845, 1518: 5_462}),
    ],
)
def test_weights_are_kept_as_exactly_as_the_engine_can(
    pairs: tuple[tuple[int, float], ...], parts: dict[int, int]
) -> None:
    program = program_of(UDP, size=weighted(*pairs))["sizes"]
    assert {part["frame_bytes"]: part["weight"] for part in program["weighted"]} == parts


@pytest.mark.parametrize("preset", ["imix", "ipsec_imix", "ipv6_imix", "standard_imix", "tcp_imix"])
def test_no_preset_names_a_size_twice(preset: str) -> None:
    size = {"choice": "weight_pairs", "weight_pairs": {"choice": "predefined", "predefined": preset}}
    parts = program_of(TCP if preset == "tcp_imix" else UDP, size=size)["sizes"]["weighted"]
    assert len({part["frame_bytes"] for part in parts}) == len(parts)


def test_a_weight_that_cannot_be_kept_is_refused_with_its_path() -> None:
    with pytest.raises(OtgError, match=r"config.flows\[0\].size.*needs weights of at least a 65536th of their sum"):
        program_of(UDP, size=weighted((64, 1.0), (128, 1e-9)))


@pytest.mark.parametrize("weight", [float("inf"), float("nan"), -1.0])
def test_a_weight_that_is_no_share_is_refused(weight: float) -> None:
    with pytest.raises(OtgError, match="finite, not negative"):
        program_of(UDP, size=weighted((64, 1.0), (128, weight)))
