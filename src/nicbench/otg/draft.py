"""OTG's patterns of header fields: a constant, or a program of values that the engine goes through frame by frame.

Frame n of a flow takes value n mod count of each field: the patterns of a flow advance together, each with its own
modulus. An increment is ``{"first", "step", "count"}`` modulo 2 to the power of the field's bits; so is a decrement.
"""

from __future__ import annotations

import ipaddress
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, Final

from nicbench.otg.model import Problems

_WIDEST_NUMBER: Final = 64
"""Fields of more bits are sent to the engine as hexadecimal digits."""


class Kind(Enum):
    """How values of a field are written."""

    NUMBER = "number"
    MAC = "MAC address"
    IPV4 = "IPv4 address"
    IPV6 = "IPv6 address"


Values = dict[str, Any]
"""A program of values, as the engine's protocol has it: ``{"list": [...]}``, ``{"first", "step", "count"}``."""


def _mac(text: str) -> int:
    digits = text.replace("-", ":").split(":")
    if len(digits) != 6:
        raise ValueError(text)
    return int.from_bytes(bytes(int(pair, 16) for pair in digits), "big")


_READERS: Final[Mapping[Kind, Callable[[Any], int]]] = {
    Kind.NUMBER: int,
    Kind.MAC: _mac,
    Kind.IPV4: lambda text: int(ipaddress.IPv4Address(text)),
    Kind.IPV6: lambda text: int(ipaddress.IPv6Address(text)),
}


class Pattern:
    """Reads one pattern of a message. A problem is reported with ``path``, and the default is used."""

    def __init__(self, path: str, bits: int, kind: Kind, problems: Problems) -> None:
        self._path = path
        self._bits = bits
        self._kind = kind
        self._problems = problems

    def read(self, pattern: Mapping[str, Any] | None, default: int, auto: int | None = None) -> int | Values:
        """Returns the constant or the values of a pattern; ``auto`` is what the server chooses where it is to."""
        server = default if auto is None else auto
        if not pattern:
            return server
        choice = pattern.get("choice") or next((key for key in _CHOICES if key in pattern), "auto")
        if choice == "value":
            return (self._number(pattern["value"], "value") or 0) if "value" in pattern else default
        if choice == "values":
            return self._list(pattern.get("values") or [])
        if choice in ("increment", "decrement"):
            return self._counter(pattern.get(choice) or {}, choice, default)
        if choice == "random":
            return self._random(pattern.get("random") or {})
        if isinstance(pattern.get("auto"), Mapping):  # of an address: a protocol of the model would find it
            self._problems.not_implemented(f"{self._path}.auto", "addresses are not obtained by DHCP: give a value")
        return server

    def _list(self, given: list[Any]) -> int | Values:
        if not given:
            self._problems.invalid(f"{self._path}.values", "has no value")
            return 0
        if len(given) > 1 and not self._problems.has_room(f"{self._path}.values", len(given)):
            return 0
        numbers = [self._number(value, f"values[{index}]") or 0 for index, value in enumerate(given)]
        return numbers[0] if len(numbers) == 1 else {"list": [self._sent(number) for number in numbers]}

    def _counter(self, given: Mapping[str, Any], choice: str, default: int) -> int | Values:
        start = self._number(given["start"], f"{choice}.start") if "start" in given else default
        step = self._number(given["step"], f"{choice}.step") if "step" in given else 1
        count = int(given.get("count", 1))
        if count < 1:
            self._problems.invalid(f"{self._path}.{choice}.count", "is at least 1")
        if start is None or step is None or count < 1:
            return 0
        if count == 1 or step == 0:
            return start
        signed = step if choice == "increment" else -step
        return {"first": self._sent(start), "step": self._sent(signed % (1 << self._bits)), "count": count}

    def _random(self, given: Mapping[str, Any]) -> int | Values:
        lowest = self._number(given["min"], "random.min") if "min" in given else 0
        highest = self._number(given["max"], "random.max") if "max" in given else (1 << self._bits) - 1
        count = int(given.get("count", 1))
        if lowest is None or highest is None:
            return 0
        if lowest > highest:
            self._problems.invalid(f"{self._path}.random", "min is above max")
        elif count < 1:
            self._problems.invalid(f"{self._path}.random.count", "is at least 1")
        elif self._problems.has_room(f"{self._path}.random.count", count):
            draw = random.Random(int(given.get("seed", 1)))  # noqa: S311 - the client gives the seed to repeat it
            numbers = [draw.randint(lowest, highest) for _ in range(count)]
            return numbers[0] if count == 1 else {"list": [self._sent(number) for number in numbers]}
        return 0

    def _number(self, value: Any, key: str) -> int | None:
        """Reads one value of the field; None, with a problem noted, for any other value."""
        try:
            number = _READERS[self._kind](value)
        except (ValueError, TypeError):
            self._problems.invalid(f"{self._path}.{key}", f"{str(value)[:60]!r} is no {self._kind.value}")
            return None
        if not 0 <= number < 1 << self._bits:
            self._problems.invalid(f"{self._path}.{key}", f"{number} does not fit into {self._bits} bits")
            return None
        return number

    def _sent(self, number: int) -> int | str:
        return number if self._bits <= _WIDEST_NUMBER else f"{number:0{self._bits // 4}x}"


_CHOICES: Final = ("value", "values", "increment", "decrement", "random", "auto")


INNER_TRAILER_BYTES: Final = 4
"""Lengths within an encapsulated Ethernet frame leave room for its FCS, which is not sent: as other generators do, and
as the public tests of OTG expect."""


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a header: its name in OTG, its width, and its default value.

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


@dataclass(frozen=True, slots=True)
class Tag:
    """A field, or a part of one, by whose values received frames are counted."""

    name: str
    offset_bits: int
    bits: int


@dataclass(slots=True)
class Addresses:
    """The addresses of the network header that a checksum of the next one covers (RFC 768, RFC 8200 section 8.1).

    ``destination_at``: where the destination stands instead, if a routing header has it.
    """

    at: int
    count_bytes: int
    destination_at: int | None = None


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
    tags: list[Tag] = field(default_factory=list)
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
        """Returns the fields that identify a received frame as part of this flow."""
        best = max((tells for tells, _ in self._telling), default=0)
        return [told for tells, told in self._telling if tells == best]

    def put(self, bits: int, content: int | Values = 0, tells: int = 0) -> None:
        """Adds a field of this many bits: a constant, or values."""
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
        self.tags += [replace(each, offset_bits=each.offset_bits + self._bits) for each in part.tags]
        self._value = self._value << part._bits | part._value
        self._bits += part._bits

    def note_tags(self, message: Mapping[str, Any] | None, bits: int, path: str) -> None:
        """Notes the ``metric_tags`` of the field, or header, of this many bits that is put next."""
        for index, tag in enumerate((message or {}).get("metric_tags") or ()):
            offset, length = int(tag.get("offset", 0)), int(tag.get("length", bits))
            if not 1 <= length <= bits - offset:
                where = f"{path}.metric_tags[{index}]"
                self.problems.invalid(where, f"bits {offset} to {offset + length} are not within {bits}")
            self.tags.append(Tag(str(tag.get("name")), self._bits + offset, length))

    def put_bytes(self, content: bytes) -> None:
        """Adds bytes as they are."""
        if content:
            self.put(8 * len(content), int.from_bytes(content, "big"))

    def put_field(self, message: Mapping[str, Any], spec: Field, path: str, auto: int | None = None) -> int | Values:
        """Adds a field of a message and returns what it holds; ``auto`` is what the server chooses."""
        pattern = Pattern(f"{path}.{spec.name}", spec.bits, spec.kind, self.problems)
        content = pattern.read(message.get(spec.name), spec.default, auto)
        self.note_tags(message.get(spec.name), spec.bits, f"{path}.{spec.name}")
        self.put(spec.bits, content, spec.tells)
        return content

    def put_fields(self, message: Mapping[str, Any], path: str, *specs: Field) -> None:
        """Adds fields of a message one after the other."""
        for spec in specs:
            self.put_field(message, spec, path)

    def put_length(
        self, message: Mapping[str, Any], name: str, path: str, *, counted_from: int, tells: int = 0
    ) -> None:
        """Adds a 16-bit length: the given one, or one counted from an offset to the frame's end."""
        given = message.get(name)
        at = self.at
        if is_given(given):
            self.put_field(message, Field(name, 16, tells=tells), path)
            return
        Pattern(f"{path}.{name}", 16, Kind.NUMBER, self.problems).read(given, 0)  # what else it says is checked
        self.note_tags(given, 16, f"{path}.{name}")
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
            if self.addresses.destination_at is not None:
                fixup["pseudo"]["destination_at"] = self.addresses.destination_at
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
