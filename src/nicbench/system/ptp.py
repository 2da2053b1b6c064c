"""PTP on a machine: what its ptp4l says (``pmc``), and how far the system's clock is from the card's (``phc_ctl``)."""

from __future__ import annotations

import re
from typing import Final

from nicbench.core.clocks import PtpState
from nicbench.hosts.asking import join_scripts, split_sections

_ASKED: Final = ("CURRENT_DATA_SET", "TIME_STATUS_NP", "PORT_DATA_SET", "PORT_PROPERTIES_NP")
# The interface's own clock; one with software stamps has none that matters.
_SYSTEM: Final = """
for device in $(pmc -u -b 0 'GET PORT_PROPERTIES_NP' | sed -n 's/^[[:space:]]*interface[[:space:]]*//p'); do
    for clock in /sys/class/net/"$device"/device/ptp/*; do
        [ ! -e "$clock" ] || phc_ctl "/dev/${clock##*/}" cmp
    done
done
"""
_FIELD = re.compile(r"^\s+(\w+)\s+(\S+)$", re.MULTILINE)
_APART = re.compile(r"offset from CLOCK_REALTIME is (-?\d+)ns")
_SECOND_NS: Final = 1_000_000_000


def ptp_script() -> str:
    """The shell's line that asks; it prints nothing where linuxptp is not there, or ptp4l does not run."""
    asked = " ".join(f"'GET {name}'" for name in _ASKED)
    return f"[ ! -S /var/run/ptp4l ] || {{ {join_scripts({'ptp': f'pmc -u -b 0 {asked}', 'system': _SYSTEM})}; }}"


def parse_ptp(host: str, text: str) -> PtpState | None:
    """The state in the output of ``ptp_script``; None where no ptp4l answered."""
    sections = split_sections(text)
    fields = dict(_FIELD.findall(sections.get("ptp", "")))
    if "portState" not in fields or "offsetFromMaster" not in fields:
        return None
    stamping = fields.get("timestamping", "unknown")
    return PtpState(
        host=host,
        state=fields["portState"],
        grandmaster=fields.get("gmIdentity", "unknown"),
        offset_ns=float(fields["offsetFromMaster"]),
        path_delay_ns=float(fields.get("meanPathDelay", "0")),
        stamping=stamping,
        system_ns=0.0 if stamping == "SOFTWARE" else _system_ns(sections.get("system", "")),
    )


def _system_ns(text: str) -> float | None:
    """What is left of the distance to the card's clock without whole seconds: that clock counts leap seconds too."""
    found = _APART.search(text)
    if found is None:
        return None
    apart_ns = int(found[1])
    return float(apart_ns - round(apart_ns / _SECOND_NS) * _SECOND_NS)


def bound_between(states: tuple[PtpState | None, ...]) -> float | None:
    """By how much the system's clocks of two machines may differ; None where they do not follow one grandmaster."""
    known = [state for state in states if state is not None and state.is_synchronised]
    if len(known) < 2 or len({state.grandmaster for state in known}) > 1:
        return None
    return sum(state.bound_ns for state in known)


def describe_ptp(state: PtpState | None) -> str:
    """The state in words, for the report."""
    if state is None:
        return "no ptp4l answers"
    said = f"{state.state} of {state.grandmaster}, offset {state.offset_ns:g} ns, path delay {state.path_delay_ns:g} ns"
    system = "not known" if state.system_ns is None else f"{state.system_ns:g} ns"
    return f"{said}, {state.stamping.lower()} stamps; the system's clock is off the card's by {system}"
