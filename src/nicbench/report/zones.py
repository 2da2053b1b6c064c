"""The zones of a searched rate in words and cells, wherever a report or a terminal shows one.

Every trial passed up to the lower bound, none from the upper one on; in between some did, where the device is not
sharp. Bounds are rounded outwards, to as many digits as their distance gives.
"""

from __future__ import annotations

from nicbench.core.result import PASSES_NOTHING, Bounded, LossFloor, Queue
from nicbench.core.table import Goal
from nicbench.core.units import format_digits, format_duration_s
from nicbench.report.numbers import THIN_SPACE, UNKNOWN, Writer, format_fixed, interval, interval_decimals, share, whole

GAP = "\u00a0"
"""A no-break space, which keeps a number and its unit on one line."""


def rate_cell(rate: Bounded, write: Writer) -> str:
    """Returns a rate as a cell has it: "200.4", "41 to 58" where trials disagreed, "≥ 41", "line rate, 14.88"; "< 0.2"
    where no load passed every time, and "none" where nothing is known.
    """
    if rate.passes_nothing:
        return PASSES_NOTHING
    if rate.value is None:
        return "none" if rate.upper is None else f"< {write.up(rate.upper)}"
    if rate.is_line_rate:
        return f"line rate, {number_cell(rate, write)}"
    return f"{'≥ ' if rate.at_least else ''}{number_cell(rate, write)}"


def number_cell(rate: Bounded, write: Writer) -> str:
    """Returns a known rate without a word of its bound: its zone where trials disagreed, else its value."""
    if rate.is_zone and rate.upper is not None:
        return interval(rate, write)
    return value_cell(rate, write)


def value_cell(rate: Bounded, write: Writer) -> str:
    """Returns the value of a known rate, rounded down where it is a load that passed."""
    value = rate.value or 0.0
    return write.down(value) if value == rate.lower and not rate.is_line_rate else write(value)


def interval_cell(rate: Bounded, write: Writer) -> str:
    """Returns what is known beside a rate: its interval, or within its zone the loads that some and half passed."""
    if rate.is_zone:
        return _inside(rate, write)
    found = interval(rate, write)
    if rate.loss_floor is not None:
        return f"{found}; {_ratio(rate.loss_floor, rate.loss_floor.ratio)} lost"
    if rate.queue is not None:
        return f"{found}; {write.down(rate.queue.burst_frames_per_s)} for {format_duration_s(rate.queue.trial_s)}"
    return found


def _inside(rate: Bounded, write: Writer) -> str:
    known = [f"half at {write(rate.half)}"] if rate.half is not None else []
    known += [f"some to {write.down(rate.some)}"] if rate.some is not None else []
    return ", ".join(known) or UNKNOWN


def failing_clause(rate: Bounded, goal: Goal, what: str, write: Writer, unit: str) -> str:
    """Returns the clause about a rate without a value: what was lost at every load, or which loads passed at times."""
    if rate.loss_floor is not None:
        return f"loses {_lost(rate.loss_floor)}{_of_the(what)} at any load (no {goal.name})"
    if rate.upper is None:  # no trial that counts: nothing is said of the DUT
        return f"has no {goal.name}{what.replace(' of ', ' for ')} ({rate.reason_null or 'it was not measured'})"
    if rate.some is not None:
        bounds = f"some up to {write.down(rate.some)}{GAP}{unit}, none above {write.up(rate.upper)}{GAP}{unit}"
        return f"passes no load{what} {goal.clause} in every trial: {bounds} ({goal.name})"
    lost = f"more than {share(goal.loss_ratio)} of the frames" if goal.loss_ratio else "frames"
    return f"lost {lost} at every load{what} that was tried ({goal.name} below {write.up(rate.upper)}{GAP}{unit})"


def passing_clause(rate: Bounded, goal: Goal, what: str, write: Writer, unit: str, *, begins: bool) -> str:
    """Returns the clause about a known rate: "passes 200.4 kpps of 64-byte frames without loss, and no load from 200.9
    kpps on (NDR)". With ``begins`` it begins its sentence, with the goal: "Without loss it passes ...".
    """
    if rate.loss_floor is not None:
        lost = _floor_clause(rate, rate.loss_floor, goal, what, write, unit)
        return f"It {lost}" if begins else lost
    number = f"{number_cell(rate, write)}{GAP}{unit}"
    least = "at least " if rate.at_least else ""
    passes = f"the line rate{what}, {number}," if rate.is_line_rate else f"{least}{number}{what}"
    meets = goal.clause if rate.queue is None else f"{goal.clause} and without a growing queue"
    whole_clause = f"{meets[:1].upper()}{meets[1:]} it passes {passes}" if begins else f"passes {passes} {meets}"
    queue = _queue_clause(rate.queue, goal, write, unit)
    return f"{whole_clause}{_bounds_clause(rate, write, unit)} ({goal.name}){queue}"


def _bounds_clause(rate: Bounded, write: Writer, unit: str) -> str:
    """Returns what else trials showed: where no load passed, and what happened in between."""
    if not rate.is_zone:
        if rate.upper is None:
            return ""
        if rate.value != rate.lower:
            return f", interval {interval(rate, write)}{GAP}{unit}"
        return f", and no load from {write.up(rate.upper)}{GAP}{unit} on"
    told = [f"every trial up to {write.down(rate.lower or 0.0)}{GAP}{unit}"]
    if rate.upper is not None:
        told.append(f"none above {write.up(rate.upper)}{GAP}{unit}")
    elif rate.some is not None:
        told.append(f"some up to {write.down(rate.some)}{GAP}{unit}")
    if rate.shared_core:
        told.append("by what other programs leave of the CPU")
    half = f"; half of the trials passed at {write(rate.half)}{GAP}{unit}" if rate.half is not None else ""
    return f": {', '.join(told)}{half}"


def _queue_clause(queue: Queue | None, goal: Goal, write: Writer, unit: str) -> str:
    if queue is None:
        return ""
    burst = f"{write.down(queue.burst_frames_per_s)}{GAP}{unit}"
    lasted = format_duration_s(queue.trial_s).replace(" ", GAP)
    lost = goal.clause if goal.loss_ratio else "without loss"
    return f"; a queue of {whole(queue.frames)} frames let {burst} through {lasted} {lost}"


def _floor_clause(rate: Bounded, floor: LossFloor, goal: Goal, what: str, write: Writer, unit: str) -> str:
    up_to = f" up to {write.down(floor.up_to_frames_per_s)}{GAP}{unit}"
    trials = f"{format_duration_s(floor.trial_s).replace(' ', GAP)} trials"
    meet = (
        "lose nothing" if not goal.loss_ratio else f"lose at most {format_digits(100 * goal.loss_ratio)}{THIN_SPACE}%"
    )
    return (
        f"loses {_lost(floor)}{_of_the(what)} at any load{up_to}; a rate {goal.clause} then depends on the length of "
        f"the trial: half of the {trials} {meet} at {number_cell(rate, write)}{GAP}{unit} ({goal.name})"
    )


def _of_the(what: str) -> str:
    return what.replace(" of ", " of the ", 1) or " of the frames"


def _lost(floor: LossFloor) -> str:
    """Returns a loss with its interval: "0.0100 % (0.0097 to 0.0103 %)"."""
    lower = _ratio(floor, floor.lower).removesuffix(f"{THIN_SPACE}%")
    return f"{_ratio(floor, floor.ratio)} ({lower} to {_ratio(floor, floor.upper)})"


def _ratio(floor: LossFloor, ratio: float) -> str:
    """Returns a share in percent with the digits that its interval gives."""
    decimals = interval_decimals(100.0 * floor.lower, 100.0 * floor.upper)
    return f"{format_fixed(100.0 * ratio, max(0, decimals))}{THIN_SPACE}%"
