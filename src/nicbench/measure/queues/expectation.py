"""To which queue the hash of an adapter sends each flow of a trial, by its own key and table. Pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence
from typing import Final

from nicbench.core.headers import FlowRule
from nicbench.core.machine import ReceiveHash
from nicbench.core.pattern import way_of_stream
from nicbench.core.traffic import StreamSpec, Traffic
from nicbench.core.trial import StreamReading
from nicbench.stats.queues import Toeplitz, queue_of
from nicbench.testbed.addressing import FlowHeaders, UnknownHeadersError, flow_headers
from nicbench.testbed.duts.base import Addressing

TOEPLITZ: Final = "toeplitz"
ADDRESSES, ADDRESSES_AND_PORTS = "sd", "sdfn"
_FIELDS: Final = (ADDRESSES, ADDRESSES_AND_PORTS)


class NotExpectedError(Exception):
    """No queue can be computed; the message completes a sentence after "because"."""


def require_known(known: ReceiveHash) -> None:
    """Raises NotExpectedError where something of the hash is not known, or is none of those computed here."""
    if not known.table:
        raise NotExpectedError("the driver shows no indirection table (ethtool -x)")
    if known.function not in (None, TOEPLITZ):
        raise NotExpectedError(f"the hash function is {known.function}")
    if known.key is None:
        raise NotExpectedError("neither the driver nor the kernel shows the key of the hash")
    if known.fields not in _FIELDS:
        fields = known.fields or "unknown"
        raise NotExpectedError(f"the fields of the hash are {fields}, not addresses with or without ports")
    if known.other_rules:
        raise NotExpectedError(f"{known.other_rules} of the adapter's flow rules are not understood")


def expected_frames(
    known: ReceiveHash, traffic: Traffic, streams: Iterable[StreamReading], ways: Sequence[Addressing], queues: int
) -> tuple[int, ...]:
    """Frames of these streams for each of so many queues; NotExpectedError where that cannot be computed.

    A stream sends a frame of each of its flows in turn, from the first on.
    """
    require_known(known)
    specs = {stream.name: stream for stream in traffic.port_streams()}
    by_ports = {(way.transmit, way.receive): way for way in ways}
    frames = [0] * (1 + max(queues - 1, *known.table, *(rule.queue or 0 for rule in known.rules)))
    for stream in streams:
        spec, way = specs.get(_name_of(stream, specs)), by_ports.get(way_of_stream(stream.name) or (-1, -1))
        if spec is None or way is None:
            raise NotExpectedError(f"the stream {stream.name} is none of the traffic's")
        each, more = divmod(stream.counts.sent, spec.flows)
        try:
            for flow, queue in enumerate(queues_of_flows(known, spec, way)):
                if queue is not None:
                    frames[queue] += each + (flow < more)
        except UnknownHeadersError as error:
            raise NotExpectedError(str(error)) from error
    return tuple(frames)


def queues_of_flows(known: ReceiveHash, stream: StreamSpec, way: Addressing) -> Iterable[int | None]:
    """Yields the queue of each flow of a stream: by the first rule that is for it, else by the hash; None: dropped."""
    with_ports = known.fields == ADDRESSES_AND_PORTS
    size = 2 * (4 if way.ip == 4 else 16) + (4 if with_ports else 0)
    try:
        hashes = Toeplitz(bytes.fromhex((known.key or "").replace(":", "")), size)
    except ValueError as error:
        raise NotExpectedError(str(error)) from error
    rules = [rule for rule in known.rules if rule.flow == f"{stream.protocol}{way.ip}"]
    for headers in flow_headers(stream, way):
        rule = next((rule for rule in rules if _is_for(rule, headers)), None)
        if rule is not None:
            yield rule.queue
            continue
        yield queue_of(hashes(_input(headers, with_ports=with_ports)), known.table)


def _is_for(rule: FlowRule, headers: FlowHeaders) -> bool:
    """Whether every field that a rule gives is that of the flow."""
    pairs = (
        (rule.source_address, str(ipaddress.ip_address(headers.source))),
        (rule.destination_address, str(ipaddress.ip_address(headers.destination))),
        (rule.source_port, headers.source_port),
        (rule.destination_port, headers.destination_port),
    )
    return all(given is None or given == own for given, own in pairs)


def _input(headers: FlowHeaders, *, with_ports: bool) -> bytes:
    addresses = headers.source + headers.destination
    if not with_ports:
        return addresses
    return addresses + headers.source_port.to_bytes(2) + headers.destination_port.to_bytes(2)


def _name_of(stream: StreamReading, specs: Iterable[str]) -> str:
    """The stream's name in the traffic: behind its ports, or the only one."""
    _, _, name = stream.name.partition(" ")
    return name or next(iter(specs))
