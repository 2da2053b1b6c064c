"""Messages are refused as snappi and protobuf refuse them, with the path of the field."""

from __future__ import annotations

from typing import Any

import pytest
import snappi
from hypothesis import given
from hypothesis import strategies as st

from nicbench.otg.model import OtgError, Problems, check_message, parse_message

from .frames import header, program_of


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
