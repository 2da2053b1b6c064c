"""The proof of a port: what `nicbench prove` tried of it, what was seen, and with which card, driver and kernel."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Final, Literal

from pydantic import Field

from nicbench.core.base import Frozen

FORMAT: Final = 1
DRIVERS: Final = ("xdp", "net_af_xdp", "net_af_packet")
"""The tester's drivers for kernel interfaces, the fastest first."""


class Outcome(StrEnum):
    """What came of trying; ``absent``: the port has no such thing; ``untried``: the reason says why."""

    PROVEN = "proven"
    FAILED = "failed"
    ABSENT = "absent"
    UNTRIED = "untried"

    @property
    def words(self) -> str:
        """The outcome as a reader meets it."""
        return {Outcome.ABSENT: "not there", Outcome.UNTRIED: "not tried"}.get(self, self.value)


class Finding(Frozen):
    """One line of a proof. ``name`` is ``ability.thing``, ``seen`` what was seen; figures have their units in names."""

    name: str = Field(pattern=r"^[a-z_]+(\.[a-z0-9_]+)+$", max_length=80)
    outcome: Outcome
    seen: str = Field(max_length=2000)
    figures: dict[str, float | int | str] = Field(default_factory=dict)


class ProvenPort(Frozen):
    """A port and what moves its frames; None is unknown. Neither its address nor its serial number is in it."""

    device: str
    driver: str
    driver_version: str | None = None
    firmware: str | None = None
    card: str | None = None
    """PCI vendor, device and subsystem, as ``8086:1572 8086:0007``."""
    bits_per_s: int | None = None
    fingerprint: str
    """A hash of machine and address, by which later runs on this machine find the proof again."""

    def differences(self, other: ProvenPort) -> tuple[str, ...]:
        """Says in what the port is another one now, so that the proof no longer holds of it."""
        told = (
            ("driver", self.driver, other.driver),
            ("driver version", self.driver_version, other.driver_version),
            ("firmware", self.firmware, other.firmware),
        )
        return tuple(
            f"{what} {now or 'unknown'} instead of {then or 'unknown'}" for what, then, now in told if then != now
        )


class Proof(Frozen):
    """All findings of one proof. ``loop`` is how frames came back."""

    format: Literal[1] = FORMAT
    nicbench: str
    kernel: str
    made_at: str
    """ISO 8601, in UTC."""
    took_s: float
    loop: Literal["cable", "plug"]
    in_virtual_machine: bool | None = None
    """Whether the machine is virtual, so that its cards may be emulated; None is unknown."""
    ports: tuple[ProvenPort, ...] = Field(min_length=1, max_length=2)
    findings: tuple[Finding, ...]

    @classmethod
    def schema_text(cls) -> str:
        """The content of docs/proof.schema.json."""
        schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **cls.model_json_schema()}
        return f"{json.dumps(schema, indent=2)}\n"

    def aged(self, port: ProvenPort, kernel: str) -> tuple[str, ...]:
        """Says in what a port of the proof, or the kernel, is another one now, so that the proof no longer holds."""
        then = next(each for each in self.ports if each.fingerprint == port.fingerprint)
        return (*then.differences(port), *((f"kernel {kernel}",) if kernel != self.kernel else ()))

    def of(self, name: str) -> Finding | None:
        """The finding of this name; None where nothing was found of it."""
        return next((each for each in self.findings if each.name == name), None)

    def drivers(self, outcome: Outcome) -> tuple[str, ...]:
        """The tester's drivers that were found so, the fastest first."""
        found = {each.name for each in self.with_outcome(outcome)}
        return tuple(driver for driver in DRIVERS if f"drivers.{driver}" in found)

    def with_outcome(self, outcome: Outcome) -> tuple[Finding, ...]:
        """The findings of one outcome, in their order."""
        return tuple(each for each in self.findings if each.outcome is outcome)


if __name__ == "__main__":
    print(Proof.schema_text(), end="")
