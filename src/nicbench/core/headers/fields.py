"""Fields of headers in a bench file: a fixed value, or a different one in each flow."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, Final

from pydantic import AfterValidator, Field, field_validator

from nicbench.core.base import Frozen

LARGEST_PORT: Final = 65_535


class Sweep(Frozen):
    """``count`` values from ``first`` in steps of ``step``: in turn over the flows, or drawn for each with a seed."""

    first: int = Field(ge=0)
    """The first value."""
    count: int = Field(ge=1, le=2**32)
    """How many values."""
    step: int = Field(default=1, ge=1)
    """The distance of two values."""
    seed: int | None = Field(default=None, ge=0, le=2**63 - 1)
    """Draws the value of each flow at random with this seed; without it the flows take the values in turn."""

    @property
    def last(self) -> int:
        """The largest value of the field."""
        return self.first + (self.count - 1) * self.step


FieldValue = int | Sweep


def fits(value: FieldValue | None, bits: int) -> FieldValue | None:
    """The value of a field of so many bits. ValueError where it reaches further."""
    last = value.last if isinstance(value, Sweep) else value
    if last is not None and not 0 <= last < 2**bits:
        raise ValueError(f"it reaches {last}, and the field has {bits} bits: stay at or below {2**bits - 1}")
    return value


def _of_bits(bits: int) -> AfterValidator:
    return AfterValidator(partial(fits, bits=bits))


Bits3 = Annotated[FieldValue, _of_bits(3)]
Bits6 = Annotated[FieldValue, _of_bits(6)]
Bits8 = Annotated[FieldValue, _of_bits(8)]
Bits16 = Annotated[FieldValue, _of_bits(16)]
Bits20 = Annotated[FieldValue, _of_bits(20)]
Bits24 = Annotated[FieldValue, _of_bits(24)]
Bits32 = Annotated[FieldValue, _of_bits(32)]

_BITS: Final = {
    "source_port": 16,
    "destination_port": 16,
    "vlan": 12,
    "vlan_priority": 3,
    "traffic_class": 8,
    "identification": 16,
    "flow_label": 20,
    "hop_limit": 8,
    "vni": 24,
    "tcp_sequence": 32,
    "tcp_acknowledgement": 32,
    "tcp_flags": 8,
}


class Fields(Frozen):
    """Header fields with a fixed value, or a different one in each flow. ``vlan`` is that of the innermost tag."""

    source_port: FieldValue | None = None
    """Source port of UDP or TCP, 16 bits."""
    destination_port: FieldValue | None = None
    """Destination port of UDP or TCP, 16 bits."""
    vlan: FieldValue | None = None
    """Identifier of the innermost VLAN tag, 12 bits."""
    vlan_priority: FieldValue | None = None
    """Priority of the VLAN tag, 3 bits."""
    traffic_class: FieldValue | None = None
    """Traffic class of IPv6, or the field of IPv4 with DSCP and ECN, 8 bits."""
    identification: FieldValue | None = None
    """Identification of IPv4, 16 bits."""
    flow_label: FieldValue | None = None
    """Flow label of IPv6, 20 bits."""
    hop_limit: FieldValue | None = None
    """Hop limit or time to live, 8 bits."""
    vni: FieldValue | None = None
    """Network identifier of VXLAN, 24 bits."""
    tcp_sequence: FieldValue | None = None
    """Sequence number of TCP, 32 bits."""
    tcp_acknowledgement: FieldValue | None = None
    """Acknowledgement number of TCP, 32 bits."""
    tcp_flags: int | None = None
    """Flags of TCP, 8 bits; the same in every frame."""

    @field_validator("*")
    @classmethod
    def _fits(cls, value: FieldValue | None, info: Any) -> FieldValue | None:
        return fits(value, _BITS[info.field_name])

    def given_fields(self) -> dict[str, FieldValue]:
        """Returns the fields that are set, by name."""
        return {name: value for name in _BITS if (value := getattr(self, name)) is not None}
