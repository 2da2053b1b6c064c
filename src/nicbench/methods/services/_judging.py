"""Whether what came of a service is accepted, and in words what is not (ITU-T Y.1564). Pure."""

from __future__ import annotations

from collections.abc import Callable

from nicbench.core.units import format_bits_per_s, format_ratio
from nicbench.methods.services._seen import Seen
from nicbench.methods.services._service import Acceptance, Service, Step, bounds_of


def failures_of(service: Service, step: Step, seen: Seen) -> list[str]:
    """Returns in words what is not accepted of a step; nothing where all is.

    Loss and delay are judged of committed frames: where a step sends excess that is not marked, no frame is known to be
    committed, and the information rate alone is. A rate fails where it does so in the whole of its interval.
    """
    accept, said = service.accept, []
    least, most = bounds_of(service, step, seen.duration_s)
    marked = service.excess_stream is not None and step.committed_bits_per_s <= service.cir
    if step.kind == "cir" or marked:
        said += _limit_failures(accept, seen)
    committed = seen.committed_bits_per_s if service.excess_stream else seen.bits_per_s
    if step.kind != "cir" and committed * (1.0 + seen.uncertainty) < least:
        came, must = _write_apart(committed, least, format_bits_per_s)
        said.append(f"{came} came, at least {must} must")
    if most is not None and seen.bits_per_s * (1.0 - seen.uncertainty) > most:
        came, may = _write_apart(seen.bits_per_s, most, format_bits_per_s)
        said.append(f"{came} came, at most {may} may")
    return said


def performance_failures(service: Service, seen: Seen) -> list[str]:
    """Returns in words what is not accepted of a service in the performance test; nothing where all is."""
    said, least = _limit_failures(service.accept, seen), service.accept.availability
    known = seen.availability
    if least is not None and known is not None and known.upper < least:
        was, asked = _write_apart(known.upper, least, format_ratio)
        bound = "at most " if known.lower < known.upper else ""
        said.append(f"available for {bound}{was} of the time, {asked} are asked for")
    return said


def _limit_failures(accept: Acceptance, seen: Seen) -> list[str]:
    said = []
    if seen.loss_ratio is not None and seen.loss_ratio > accept.loss:
        lost, may = _write_apart(seen.loss_ratio, accept.loss, format_ratio)
        said.append(f"{lost} lost, {may} may be")
    for name, measured_ns, limit_s in (
        ("mean delay", seen.delay_ns, accept.delay),
        ("delay variation", seen.delay_variation_ns, accept.delay_variation),
    ):
        if limit_s is not None and measured_ns is not None and measured_ns > 1e9 * limit_s:
            was, may = _write_apart(measured_ns / 1e3, 1e6 * limit_s, lambda us, digits: f"{us:.{digits}g} µs")
            said.append(f"{name} {was}, {may} may be")
    return said


def _write_apart(value: float, limit: float, write: Callable[[float, int], str]) -> tuple[str, str]:
    """Writes a value and its limit with as many digits as it takes for them to differ."""
    pairs = ((write(value, digits), write(limit, digits)) for digits in range(4, 16))
    return next((pair for pair in pairs if pair[0] != pair[1]), (write(value, 17), write(limit, 17)))


def unjudged(service: Service, seen: Seen, *, long: bool) -> list[str]:
    """Returns the criteria that could not be judged because their value is unknown; availability in a ``long`` test."""
    accept, available = service.accept, seen.availability
    # Within bounds that contain the limit, availability is as unknown as without any.
    is_open = available is None or (accept.availability is not None and available.lower < accept.availability)
    pairs = (
        ("mean delay", accept.delay, seen.delay_ns),
        ("delay variation", accept.delay_variation, seen.delay_variation_ns),
        *((("availability", accept.availability, None if is_open else available),) if long else ()),
    )
    return [name for name, limit, value in pairs if limit is not None and value is None]
