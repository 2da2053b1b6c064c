"""Names, references, limits and parts of the model that are not there; captures and metrics."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import snappi
from hypothesis import given
from hypothesis import strategies as st

from nicbench.engine.generator import ColumnTally, FlowColumns, FlowState, PortCounts
from nicbench.otg import api, model
from nicbench.otg.configuration import EMPTY, read_configuration, read_filters
from nicbench.otg.counters import flow_metrics, port_metric, select_flow_columns
from nicbench.otg.model import INVALID, NOT_IMPLEMENTED, OtgError, Problems, check_message, parse_message
from nicbench.otg.transmission import Counting

from .frames import PORTS, SERVED, flow, header, program_of


def refused(config: dict[str, Any]) -> OtgError:
    with pytest.raises(OtgError) as caught:
        read_configuration(config, SERVED, seed=1)
    return caught.value


def test_every_problem_of_names_and_references_is_told_at_once() -> None:
    config = {
        "ports": [
            {"name": "p1", "location": "left"},
            {"name": "p2", "location": "left"},
            {"name": "x", "location": "y"},
        ],
        "flows": [flow([]), {"name": "f", "tx_rx": {"port": {"tx_name": "p9", "rx_names": ["p8"]}}}],
        "captures": [{"name": "c", "port_names": ["p7"]}],
    }
    assert refused(config).errors == [
        "config.flows[1].name: 'f' is the name of config.flows[0] too: names are unique",
        "config.ports[1].location: 'left' is the location of port 'p1' too",
        "config.ports[2].location: 'y' is no port of this server; its ports are left, right",
        "config.captures[0].port_names[0]: no port of the configuration is called 'p7'",
        "config.flows[1].tx_rx.port.tx_name: no port of the configuration is called 'p9'",
        "config.flows[1].tx_rx.port.rx_names[0]: no port of the configuration is called 'p8'",
    ]


@pytest.mark.parametrize("part", ["events", "lldp", "stateful_flows", "egress_only_tracking"])
def test_what_emulates_protocols_is_refused_by_name(part: str) -> None:
    error = refused({"ports": PORTS, part: [{"name": "d"}]})
    assert (error.code, error.errors[0].split(":")[0]) == (NOT_IMPLEMENTED, f"config.{part}")


def test_a_protocol_of_a_device_is_refused_by_its_own_name() -> None:
    errors = refused(
        {"ports": PORTS, "devices": [{"name": "d", "isis": {"name": "i", "system_id": "640000000001"}}]}
    ).errors
    assert "config.devices[0].isis: is not emulated: leave it out" in errors


def test_frames_that_are_larger_than_a_port_takes_are_refused_before_anything_is_changed() -> None:
    served = {name: replace(port, largest_frame_bytes=1518) for name, port in SERVED.items()}
    config = {"ports": PORTS, "flows": [flow([header("ethernet")], size={"fixed": 1519})]}
    with pytest.raises(OtgError) as caught:
        read_configuration(config, served, seed=1)
    (error,) = caught.value.errors
    assert error.startswith("config.flows[0].size: 1519 bytes are more than the 1518 that its ports take")


@pytest.mark.parametrize(("tags", "most"), [(1, 1522), (2, 1518)])
def test_a_tag_of_a_full_packet_does_not_count(tags: int, most: int) -> None:
    served = {name: replace(port, largest_frame_bytes=1518, tag_bytes=4) for name, port in SERVED.items()}
    packet = [header("ethernet"), *[header("vlan")] * tags]
    read_configuration({"ports": PORTS, "flows": [flow(packet, size={"fixed": most})]}, served, seed=1)
    with pytest.raises(OtgError, match=f"{most + 1} bytes are more than the {most} that its ports take"):
        read_configuration({"ports": PORTS, "flows": [flow(packet, size={"fixed": most + 1})]}, served, seed=1)


def test_a_flow_that_asks_for_more_than_its_link_carries_is_warned_of() -> None:
    rates = [{"choice": "gbps", "gbps": each} for each in (10, 11)]
    flows = [flow([header("ethernet")], rate=rate) | {"name": f"f{rate['gbps']}"} for rate in rates]
    (warning,) = read_configuration({"ports": PORTS, "flows": flows}, SERVED, seed=1).warnings
    assert warning.startswith("config.flows[1].rate: 11 Gb/s are asked for, and its port's link carries 10 Gb/s")


def of_listed_values(name: str, fields: int) -> dict[str, Any]:
    """A flow with this number of fields of ten values each, half of them random."""
    values = {"choice": "values", "values": list(range(10))}
    labels = [values, {"choice": "random", "random": {"count": 10}}] * (fields // 2)
    tags = [{"choice": "mpls", "mpls": {"label": label}} for label in labels]
    return flow([header("ethernet"), *tags], size={"fixed": 1518}) | {"name": name}


def test_more_values_than_a_flow_or_a_configuration_may_list_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model, "MOST_VALUES_OF_FLOW", 80)
    monkeypatch.setattr(model, "MOST_VALUES", 90)
    assert refused({"ports": PORTS, "flows": [of_listed_values("f", 10)]}).errors == [
        "config.flows[0].packet[9].mpls.label.values: the flow lists more than 80 values: use increments",
        "config.flows[0].packet[10].mpls.label.random.count: the flow lists more than 80 values: use increments",
    ]
    (error,) = refused({"ports": PORTS, "flows": [of_listed_values("f", 8), of_listed_values("g", 2)]}).errors
    assert error.startswith("config.flows[1].packet[2].mpls.label.random.count: the configuration lists more than 90")


def test_more_flows_than_the_limit_are_refused_before_they_are_read() -> None:
    error = refused({"ports": PORTS, "flows": [flow([]) | {"name": str(number)} for number in range(4097)]})
    assert (error.code, error.errors) == (INVALID, ["config.flows: has 4097 flows, of at most 4096"])


def test_an_empty_configuration_is_one_and_links_are_warned_of() -> None:
    assert read_configuration({}, SERVED, seed=1) == EMPTY
    config = read_configuration(
        {"ports": PORTS, "layer1": [{"name": "l", "port_names": ["p1"], "speed": "speed_1_gbps"}]}, SERVED, seed=1
    )
    assert config.warnings == ("config.layer1[0]: links stay as they are: speed are not set",)


def filters(*messages: dict[str, Any]) -> tuple[dict[str, Any], ...]:
    problems = Problems()
    made = read_filters(messages, "config.captures[0].filters", problems)
    problems.raise_any()
    return made


def test_filters_of_headers_stand_where_the_header_does() -> None:
    made = filters(
        {"choice": "ethernet", "ethernet": {"src": {"value": "000001010101", "mask": "ffffffffffff"}}},
        {"choice": "vlan", "vlan": {"id": {"value": "64", "mask": "fff", "negate": True}}},
        {"choice": "ipv4", "ipv4": {"dst": {"value": "01010102", "mask": "ffffffff"}, "protocol": {"value": "11"}}},
    )
    assert made == (
        {"offset": 6, "bytes": "000001010101", "mask": "ffffffffffff", "negate": False},
        {"offset": 14, "bytes": "0064", "mask": "0fff", "negate": True},
        {"offset": 18 + 16, "bytes": "01010102", "mask": "ffffffff", "negate": False},
    )


def test_a_filter_of_bits_is_one_of_bytes_under_a_mask() -> None:
    custom = {"offset": 100, "bit_length": 10, "value": "155", "mask": "3ff"}
    assert filters({"choice": "custom", "custom": custom}) == (
        {"offset": 12, "bytes": "0554", "mask": "0ffc", "negate": False},
    )
    with pytest.raises(OtgError, match=r"filters\[0\].custom.value: '400' is no hexadecimal number of 10 bits"):
        filters({"choice": "custom", "custom": custom | {"value": "400"}})


EARLY = {"sent": 100, "sent_bytes": 6400, "received": 90, "received_bytes": 5760}
LATE = {"sent": 300, "sent_bytes": 19200, "received": 270, "received_bytes": 17280}
LATENCY = {"latency_minimum_ns": 1, "latency_mean_ns": 2.5, "latency_maximum_ns": 9}


def columns(**counts: Any) -> FlowColumns:
    """The counts of one flow that is started; null where nothing is given."""
    known = {"flow": 0, "state": "started", "unsent_tester": 0, "unsent_backpressure": 0, "late_maximum_ns": 0}
    told = dict.fromkeys(FlowColumns.model_fields) | known | counts
    return FlowColumns.model_validate({name: [value] for name, value in told.items()})


BEFORE = columns(**EARLY)
NOW = columns(**LATE, **LATENCY, lost=30, first_received_ns=5, last_received_ns=6)
PORT: dict[str, Any] = {"name": "left", "foreign": 0, "stale": 0, "link_up": True, "counters": {}}
STARTED = FlowState.STARTED


def a_flow(rx: list[str]) -> Any:
    config = {"ports": PORTS, "flows": [flow([header("ethernet")], metrics={"enable": True})]}
    config["flows"][0]["tx_rx"]["port"]["rx_names"] = rx
    return read_configuration(config, SERVED, seed=1).flows[0]


def test_a_flows_metric_has_every_field_that_clients_read() -> None:
    (metric,) = flow_metrics([a_flow(["p2"])], [0], NOW, BEFORE, 2.0, [STARTED])
    assert (metric["port_tx"], metric["port_rx"], metric["transmit"]) == ("p1", "p2", "started")
    assert (metric["frames_tx"], metric["frames_rx"], metric["loss"]) == (300, 270, 10.0)
    assert (metric["frames_tx_rate"], metric["tx_rate_bytes"], metric["tx_l1_rate_bps"]) == (100, 6400, 67200)
    assert metric["latency"] == {"minimum_ns": 1.0, "average_ns": 2.5, "maximum_ns": 9.0}
    assert metric["timestamps"] == {"first_timestamp_ns": 5.0, "last_timestamp_ns": 6.0}
    assert set(snappi.FlowMetric._TYPES) - set(metric) == {"tagged_metrics", "packet_loss_duration"}
    assert select_flow_columns(metric, ["frames_tx"]).keys() == {"name", "port_tx", "port_rx", "frames_tx"}


def test_a_flow_that_nobody_receives_has_nothing_of_what_came_back() -> None:
    (metric,) = flow_metrics([a_flow([])], [0], columns(sent=9, sent_bytes=9), None, 0.0, [STARTED])
    assert not {"loss", "frames_rx", "bytes_rx", "frames_rx_rate", "rx_rate_bps", "latency"} & set(metric)
    assert (metric["port_rx"], metric["frames_tx"], metric["frames_tx_rate"]) == ("", 9, 0.0)


def test_rates_are_none_of_a_flow_that_has_stopped_or_was_started_anew() -> None:
    told = flow_metrics([a_flow(["p2"])], [0], NOW, BEFORE, 2.0, [FlowState.STOPPED])
    again = flow_metrics([a_flow(["p2"])], [0], BEFORE, NOW, 2.0, [STARTED])
    assert [(metric["frames_tx_rate"], metric["rx_rate_bps"]) for (metric,) in (told, again)] == [(0, 0), (0, 0)]


def test_a_ports_metric_has_every_field_that_clients_read() -> None:
    now, before = PortCounts(**PORT | LATE), PortCounts(**PORT | EARLY)
    metric = port_metric("p1", "left", 10e9, now, before, 2.0, 7, capturing=True, transmitting=False)
    assert (metric["bytes_rx_rate"], metric["capture"], metric["transmit"], metric["speed"]) == (
        5760,
        "started",
        "stopped",
        10_000,
    )
    assert set(snappi.PortMetric._TYPES) - set(metric) == {"data_integrity"}


def small(name: str, port: int, size: int) -> dict[str, Any]:
    """A flow of frames without room for a signature."""
    packet = [header("ethernet"), header("ipv4"), header("tcp", src_port=port)]
    return flow(packet, metrics={"enable": True}, size={"fixed": size}) | {"name": name}


def test_flows_without_a_signature_are_told_apart_by_headers_or_sizes() -> None:
    config = {"ports": PORTS, "flows": [small("a", 1, 64), small("b", 2, 64), small("c", 2, 65)]}
    flows = read_configuration(config, SERVED, seed=1).flows
    assert [each.program["match"]["bytes"] for each in flows] == [None, [64], [65]]
    config["flows"].append(small("d", 1, 64))
    assert [problem.split(":")[0] for problem in refused(config).errors] == ["config.flows[0]", "config.flows[3]"]


def problems_of(kind: str, message: Any) -> list[str]:
    problems = Problems()
    check_message(kind, message, "config", problems)
    try:
        problems.raise_any()
    except OtgError as error:
        return error.errors
    return []


def test_what_snappi_serialises_is_a_message_of_the_model() -> None:
    config = snappi.Config()
    config.ports.add(name="p1", location="left")
    config.captures.add(name="c", port_names=["p1"])
    flow = config.flows.add(name="f")
    flow.tx_rx.port.tx_name = "p1"
    ethernet, ip, udp = flow.packet.ethernet().ipv6().udp()
    ethernet.src.increment.start = "00:00:00:00:00:01"
    ip.dst.values = ["2001:db8::1", "::2"]
    udp.src_port.random.max = 7
    flow.rate.pps = 2**40
    assert problems_of("Config", config.serialize(config.DICT)) == []


@pytest.mark.parametrize(
    ("message", "problem"),
    [
        ({"port": []}, "config.port: is no member of Config"),
        ({"ports": {}}, "config.ports: is an object, not a list"),
        ({"ports": [{"location": "x"}]}, "config.ports[0].name: is missing"),
        ({"ports": ["p"]}, "config.ports[0]: is a text, not an object"),
        ({"flows": [{"name": "f", "tx_rx": {}, "rate": {"pps": 0}}]}, "config.flows[0].rate.pps: is 0; it must be at"),
        (
            {"flows": [{"name": "f", "tx_rx": {}, "rate": {"choice": "fast"}}]},
            "rate.choice: is 'fast'; known: pps, bps",
        ),
        ({"flows": [{"name": 7, "tx_rx": {}}]}, "config.flows[0].name: is '7', not a text"),
        (
            {"flows": [{"name": "f", "tx_rx": {}, "metrics": {"enable": 1}}]},
            "metrics.enable: is '1', not true or false",
        ),
        (
            {"flows": [{"name": "f", "tx_rx": {}, "packet": [{"ethernet": {"dst": {"value": "1:2"}}}]}]},
            "config.flows[0].packet[0].ethernet.dst.value: is '1:2', not a MAC address",
        ),
        (
            {"flows": [{"name": "f", "tx_rx": {}, "packet": [{"ipv4": {"src": {"values": ["1.1.1.1", "1.1.1"]}}}]}]},
            "packet[0].ipv4.src.values[1]: is '1.1.1', not an IPv4 address",
        ),
        ({"captures": [{"name": "c", "port_names": [], "packet_size": 70000}]}, "packet_size: is 70000; it must be at"),
    ],
)
def test_refusals_name_the_field(message: dict[str, Any], problem: str) -> None:
    (told,) = problems_of("Config", message)
    assert problem in told


_KEYS = ["ports", "flows", "name", "tx_rx", "packet", "choice", "ipv4", "src", "value", "increment", "rate", "size"]
_anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(_KEYS) | st.text(max_size=4), inner),
    max_leaves=20,
)


@given(_anything)
def test_garbage_is_refused_and_never_fails(message: Any) -> None:
    for problem in problems_of("Config", message):
        assert problem.startswith("config")


def test_a_member_that_is_null_is_as_if_it_were_not_there() -> None:
    assert parse_message(b'{"flows": null, "ports": [{"name": "p1", "location": null}]}') == {"ports": [{"name": "p1"}]}
    value = b'{"choice": "value", "value": null}'
    packet = parse_message(b'{"packet": [{"choice": "ethernet", "ethernet": {"src": %s}}]}' % value)["packet"]
    assert program_of(packet)["template"] == program_of([header("ethernet")])["template"]


@pytest.mark.parametrize(("body", "problem"), [(b"[]", "no JSON object"), (b"{", "no JSON"), (b"[" * 9999, "no JSON")])
def test_what_is_no_json_object_is_refused(body: bytes, problem: str) -> None:
    with pytest.raises(OtgError, match=f"the body is {problem}"):
        parse_message(body)


CONFIG: dict[str, Any] = {
    "ports": [{"name": "p1"}],
    "flows": [{"name": "a", "rate": {"pps": 1}, "size": {"fixed": 64}}, {"name": "b", "rate": {"pps": 2}}],
}


def names(config: dict[str, Any]) -> list[str]:
    return [flow["name"] for flow in config["flows"]]


def test_only_the_named_properties_of_the_named_flows_are_replaced() -> None:
    new = {"name": "a", "rate": {"pps": 7}, "size": {"fixed": 128}}
    message = {"choice": "flows", "flows": {"property_names": ["rate"], "flows": [new]}}
    changed = api.update(CONFIG, message)
    assert changed["flows"][0] == {"name": "a", "rate": {"pps": 7}, "size": {"fixed": 64}}
    assert (changed["flows"][1], changed["ports"]) == (CONFIG["flows"][1], CONFIG["ports"])
    assert CONFIG["flows"][0]["rate"] == {"pps": 1}


def test_flows_are_added_behind_the_others_and_taken_away_by_name() -> None:
    parts = [{"choice": "flows", "flows": [{"name": "c"}]}, {"choice": "flows", "flows": [{"name": "d"}]}]
    assert names(api.append(CONFIG, {"config_append_list": parts})) == ["a", "b", "c", "d"]
    assert names(api.append({}, {"config_append_list": parts})) == ["c", "d"]
    gone = {"config_delete_list": [{"choice": "flows", "flows": ["a"]}]}
    assert names(api.delete(CONFIG, gone)) == ["b"]


def test_flows_that_nobody_knows_are_named() -> None:
    with pytest.raises(OtgError) as error:
        api.delete(CONFIG, {"config_delete_list": [{"flows": ["a", "x", "y"]}]})
    assert error.value.errors == [
        "config_delete.config_delete_list: flow 1: no flow of the configuration is called 'x'",
        "config_delete.config_delete_list: flow 2: no flow of the configuration is called 'y'",
    ]
    with pytest.raises(OtgError, match=r"config_update.flows.flows\[0\].name: no flow"):
        api.update(CONFIG, {"flows": {"property_names": ["rate"], "flows": [{"name": "x"}]}})
    with pytest.raises(OtgError, match=r"config_update.protocols") as refused:
        api.update(CONFIG, {"choice": "protocols"})
    assert refused.value.code == NOT_IMPLEMENTED


class Told:
    """An engine whose only port has its link up or down."""

    link_up: bool | None = True

    async def tally_columns(self) -> ColumnTally:
        counts = dict.fromkeys(("sent", "sent_bytes", "received", "received_bytes", "foreign", "stale"), 0)
        port = {"name": "left", **counts, "link_up": self.link_up, "counters": {}}
        columns: dict[str, Any] = {name: [] for name in FlowColumns.model_fields}
        return ColumnTally.model_validate({"at_ns": 1, "columns": columns, "ports": [port], "health": None})


async def test_a_link_is_known_to_have_changed_when_it_is_first_seen_otherwise() -> None:
    engine = Told()
    counting = Counting(engine)  # type: ignore[arg-type]  # it asks for nothing else
    assert counting.link_changed_ns("left") == 0
    await counting.count()
    first = counting.link_changed_ns("left")
    await counting.count()
    assert counting.link_changed_ns("left") == first > 0
    engine.link_up = False
    await counting.count()
    assert counting.link_changed_ns("left") > first
