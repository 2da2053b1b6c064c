"""A frame that is assembled header by header: template, varying fields, fixups, and what identifies its flow.

Offsets are from the frame's first byte or bit. Bits are in network order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from nicbench.otg.patterns import Kind, Pattern, Values
from nicbench.otg.refusals import Problems

INNER_TRAILER_BYTES: Final = 4
"""Lengths within an encapsulated Ethernet frame leave room for its FCS, which is not sent: as other generators do, and
as the public tests of OTG expect."""


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a header: its name in OTG, its width, and what it holds where nothing is said.

    ``tells``: 2 where a router leaves it alone and flows differ by it (addresses, ports), 1 where only a bridge does
    (MAC addresses), 0 where it may be rewritten on the way.
    """

    name: str
    bits: int
    default: int = 0
    kind: Kind = Kind.NUMBER
    tells: int = 0


def mac(name: str, default: int = 0) -> Field:
    """A MAC address."""
    return Field(name, 48, default, Kind.MAC, tells=1)


def ipv4_address(name: str, tells: int = 2) -> Field:
    """An IPv4 address."""
    return Field(name, 32, 0, Kind.IPV4, tells)


def ipv6_address(name: str) -> Field:
    """An IPv6 address."""
    return Field(name, 128, 0, Kind.IPV6, tells=2)


@dataclass(slots=True)
class Addresses:
    """The addresses of the network header that a checksum of the next one covers (RFC 768, RFC 8200 section 8.1)."""

    at: int
    count_bytes: int


@dataclass(slots=True)
class Draft:
    """The headers put so far."""

    problems: Problems
    addresses: Addresses | None = None
    inner: bool = False
    """Whether the headers from here on are within an encapsulated Ethernet frame."""
    fields: list[dict[str, Any]] = field(default_factory=list)
    lengths: list[dict[str, Any]] = field(default_factory=list)
    checksums: list[dict[str, Any]] = field(default_factory=list)
    """Innermost first: an outer checksum covers the inner ones."""
    _value: int = 0
    _bits: int = 0
    _telling: list[tuple[int, dict[str, Any]]] = field(default_factory=list)

    @property
    def at(self) -> int:
        """The offset of the next byte."""
        return self._bits // 8

    @property
    def trailer_bytes(self) -> int:
        """Bytes at the end of the frame that a length of the next header leaves out."""
        return INNER_TRAILER_BYTES if self.inner else 0

    def template(self) -> bytes:
        """Returns the frame's first bytes."""
        return self._value.to_bytes(self._bits // 8, "big")

    def fixups(self) -> list[dict[str, Any]]:
        """Returns the fixups in the order in which the engine does them."""
        return [*self.lengths, *self.checksums]

    def match(self) -> list[dict[str, Any]]:
        """Returns the fields by which a received frame is told to be of this flow."""
        best = max((tells for tells, _ in self._telling), default=0)
        return [told for tells, told in self._telling if tells == best]

    def put(self, bits: int, content: int | Values = 0, tells: int = 0) -> None:
        """Adds a field of so many bits: a constant, or values."""
        if isinstance(content, int):
            first, values = content, None
        else:
            values = content
            sent = values["list"][0] if "list" in values else values["first"]
            first = int(sent, 16) if isinstance(sent, str) else sent
            self.fields.append({"bit_offset": self._bits, "bits": bits, "values": values})
        if tells:
            wide = f"{first:0{bits // 4}x}" if bits > 64 else first
            told = {"bit_offset": self._bits, "bits": bits, "values": values or {"list": [wide]}}
            self._telling.append((tells, told))
        self._value = self._value << bits | first
        self._bits += bits

    def append(self, part: Draft) -> None:
        """Adds a part that was put together on its own, and that has neither lengths nor checksums."""
        self.fields += [{**each, "bit_offset": each["bit_offset"] + self._bits} for each in part.fields]
        self._value = self._value << part._bits | part._value
        self._bits += part._bits

    def put_bytes(self, content: bytes) -> None:
        """Adds bytes as they are."""
        if content:
            self.put(8 * len(content), int.from_bytes(content, "big"))

    def put_field(self, message: Mapping[str, Any], spec: Field, path: str, auto: int | None = None) -> int | Values:
        """Adds a field of a message and returns what it holds; ``auto`` is what the server chooses."""
        pattern = Pattern(f"{path}.{spec.name}", spec.bits, spec.kind, self.problems)
        content = pattern.read(message.get(spec.name), spec.default, auto)
        self.put(spec.bits, content, spec.tells)
        return content

    def put_fields(self, message: Mapping[str, Any], path: str, *specs: Field) -> None:
        """Adds fields of a message one after the other."""
        for spec in specs:
            self.put_field(message, spec, path)

    def put_length(
        self, message: Mapping[str, Any], name: str, path: str, *, counted_from: int, tells: int = 0
    ) -> None:
        """Adds a 16-bit length: as it was given, or counted from an offset to the frame's end."""
        given = message.get(name)
        at = self.at
        if is_given(given):
            self.put_field(message, Field(name, 16, tells=tells), path)
            return
        Pattern(f"{path}.{name}", 16, Kind.NUMBER, self.problems).read(given, 0)  # what else it says is checked
        self.put(16)
        fixup = {"kind": "length", "at": at, "bytes": 2, "counted_from": counted_from, "minus": self.trailer_bytes}
        self.lengths.append(fixup)

    def put_checksum(
        self,
        message: Mapping[str, Any],
        name: str,
        path: str,
        *,
        start: int,
        end: int | None,
        protocol: int | None = None,
        zero_as_ffff: bool = False,
    ) -> None:
        """Adds an RFC 1071 checksum over [start, end): right, spoiled, or as given. ``end`` None: the frame's end.

        ``protocol``: the pseudo header of this protocol is part of it, with the addresses of the header before.
        """
        given = message.get(name) or {}
        at = self.at
        if given.get("choice") == "custom" or ("custom" in given and "choice" not in given):
            pattern = Pattern(f"{path}.{name}.custom", 16, Kind.NUMBER, self.problems)
            self.put(16, pattern.read({"value": given.get("custom", 0)}, 0))
            return
        self.put(16)
        fixup: dict[str, Any] = {"kind": "checksum", "at": at, "from": start, "to": end}
        if end is None and self.trailer_bytes:
            fixup["minus"] = self.trailer_bytes
        if protocol is not None:
            if self.addresses is None:
                self.problems.invalid(
                    f"{path}.{name}", "covers the addresses of an ipv4 or ipv6 header before it, of which there is none"
                )
                return
            fixup["pseudo"] = {
                "addresses_at": self.addresses.at,
                "address_bytes": self.addresses.count_bytes,
                "protocol": protocol,
            }
        if zero_as_ffff:
            fixup["zero_as_ffff"] = True
        if given.get("generated") == "bad":
            fixup["spoil"] = True
        self.checksums.insert(0, fixup)


def is_given(pattern: Mapping[str, Any] | None) -> bool:
    """Whether a pattern of a field without ``auto`` says what it holds: an empty one leaves it to the server."""
    return pattern is not None and any(
        key in pattern for key in ("value", "values", "increment", "decrement", "random")
    )
