"""Sentences about one table of results, and the name of what they are about. They tell searched rates, a statement, or
what the method words itself.
"""

from __future__ import annotations

from collections.abc import Sequence

from nicbench.core.judging import Reason
from nicbench.core.plan import Plan
from nicbench.core.registry import find
from nicbench.core.result import PASSES_NOTHING, Bounded, LimitedBy, Result, Spread, Value, number_of
from nicbench.core.table import Column, Goal, Statement
from nicbench.core.trial import Trial
from nicbench.core.turn import DEFAULT
from nicbench.core.units import SCALES, and_list, count_of, format_ratio, suitable_form
from nicbench.methods.base import Method
from nicbench.report.cells import (
    GAP,
    failing_clause,
    number_cell,
    passing_clause,
    texts,
    why_nothing_passes,
    writer,
)
from nicbench.report.numbers import UNKNOWN, basis_words, whole
from nicbench.report.section import LOAD, Row, Section, caveat, load_words, speak_cell
from nicbench.report.wording import capitalise

_KINDS = {
    "kernel-forward": "kernel IP forwarding",
    "policer": "policer",
    "bridge": "Linux bridge",
    "nat": "kernel NAT",
    "xdp-forward": "XDP forwarding",
    "xdp-tx": "XDP mirror",
    "xdp-tunnel": "XDP tunnel end",
    "tunnel-end": "Linux tunnel end",
}


def dut_name(plan: Plan) -> str | None:
    """Returns the name of the DUT without an article; None where the plan does not give one."""
    kind = plan.dut_disclosure.get("kind") or plan.dut.get("kind")
    name = plan.dut_disclosure.get("name") or plan.dut.get("name") or _KINDS.get(str(kind))
    return str(name or kind) if name or kind else None


def subject_of(plan: Plan | None) -> str:
    """Returns the subject of a sentence about the DUT; a ``name`` that the DUT discloses is preferred to its kind."""
    name = plan and (plan.dut_disclosure.get("name") or plan.dut.get("name"))
    kind = plan and (plan.dut_disclosure.get("kind") or plan.dut.get("kind"))
    if plan is None or not (name or kind) or (kind == "external" and not name):
        return "The DUT"
    if plan.simulated:
        return "The simulated DUT"
    if len({str(each.dut.get("kind")) for each in (plan, *plan.others)}) > 1:
        return "This machine" if plan.lab is not None else "The DUT"
    known = name or _KINDS.get(str(kind))
    if plan.lab is not None:
        return f"This machine's {known or f'{kind} DUT'}"
    return f"The DUT ({known or kind})"


def subject_in(plan: Plan | None, configuration: str) -> str:
    """Returns the subject of the sentences of a table. Of several imported devices, each is a configuration, whose name
    is the one that the source gives.
    """
    if plan is None or configuration == DEFAULT or plan.simulated or plan.lab is not None or not plan.dut.get("name"):
        return subject_of(plan)
    return f"The DUT ({configuration})"


_LIMIT_CLAUSES = {
    LimitedBy.DUT: "limited by the device under test (DUT)",
    LimitedBy.TESTER: "limited by the tester: the DUT may do more",
    LimitedBy.LINE_RATE: "limited by the line rate",
    LimitedBy.MAXIMUM_LOAD: "limited by the highest load that was asked for: the DUT may do more",
}


def answers_of(section: Section, subject: str) -> tuple[str, ...]:
    """Returns what a section says in whole sentences about ``subject``; for searched rates, one sentence each for the
    smallest and the largest frames.
    """
    if section.table.rates is not None and section.rows:
        first = _rates_sentence(subject, section)
        largest = largest_sentence(section) if len(section.rows) > 1 else None
        return (first, largest) if largest else (first,)
    if section.table.statement is not None:
        stated = statement_of(section)
        return (stated,) if stated else ()
    return (f"{subject} {section.sentence}.",) if section.sentence else ()


def statement_of(section: Section) -> str | None:
    """Returns the statement of the first row that has a value for it; None where no row has one."""
    statement = section.table.statement
    if statement is None:
        return None
    rows = (row for row in section.rows if number_of(row.result.values.get(statement.value)) is not None)
    row = next(rows, None)
    return None if row is None else state_rows(section, [row], [""])


def state_rows(section: Section, rows: Sequence[Row], names: Sequence[str], notes: Sequence[str] = ()) -> str:
    """Returns one sentence for all ``rows``. ``names`` has the configuration of each row, "" where it need not be
    named.
    """
    statement = section.table.statement
    assert statement is not None  # noqa: S101 - of a section that has one
    values = _speak_values(section, rows, statement.value)
    also = _speak_values(section, rows, statement.also)
    words = {LOAD: load_words(rows[0].result.parameters), **_words_of(section, rows[0])}
    lead = statement.lead.format_map(words)
    noted = f" ({', '.join(notes)})" if notes else ""
    behind = f"{_beside(section, rows, names)}{''.join(dict.fromkeys(map(_caveat, rows)))}"
    if len(rows) == 1 and values == also:
        return f"{lead}{noted}, {statement.both_say.format_map(words)} {values[0]}.{behind}"
    more = _say_also(statement, also, len(rows))
    return f"{lead}{noted}, {statement.says.format_map(words)} {and_list(_name_rows(values, names))}{more}.{behind}"


def _name_rows(texts: Sequence[str], names: Sequence[str]) -> list[str]:
    return [f"{text} (“{name}”)" if name else text for text, name in zip(texts, names, strict=True)]


def _beside(section: Section, rows: Sequence[Row], names: Sequence[str]) -> str:
    """Returns the sentence about the value that goes with a statement; "" where that value is zero or unknown in every
    row.
    """
    statement = section.table.statement
    column = next((column for column in section.table.columns if statement and column.value == statement.beside), None)
    if statement is None or column is None:
        return ""
    found = [(number_of(row.result.values.get(column.value)), name) for row, name in zip(rows, names, strict=True)]
    told = [(number, name) for number, name in found if number]
    if not told:
        return ""
    texts_of = [f"{writer(column, [number])(number)}{GAP}{column.unit}" for number, _ in told]
    return f" {statement.beside_says} {and_list(_name_rows(texts_of, [name for _, name in told]))}."


def _say_also(statement: Statement, also: Sequence[str], rows: int) -> str:
    if len(also) < rows:
        return ""
    return f"{'' if rows == 1 else ','} and {statement.also_says} {and_list(also)}"


def _speak_values(section: Section, rows: Sequence[Row], name: str) -> list[str]:
    """Returns the values of this name that are known, each in the unit that suits its magnitude."""
    found = []
    for row in rows:
        number = number_of(row.result.values.get(name))
        if number is not None:
            form = suitable_form(next((c.form for c in section.table.columns if c.value == name), "number"), number)
            column = Column(name, "", form="microseconds" if form not in SCALES else form)
            found.append(f"{writer(column, [number])(number)}{GAP}{column.unit}")
    return found


def _words_of(section: Section, row: Row) -> dict[str, str]:
    return {
        column.value: speak_cell(column, cell) for column, cell in zip(section.table.columns, row.cells, strict=True)
    }


def size_name(row: Row) -> str:
    """Returns the frame size as it stands before "frames": "64-byte", "imix"."""
    size = row.cells[0]
    return f"{size}-byte" if size.isdigit() else size


def _rates_of(section: Section, row: Row) -> list[tuple[Goal, Bounded]]:
    """Returns each goal of the table for which the row has a value, with its rate."""
    goals = section.table.rates.goals if section.table.rates else ()
    pairs = ((goal, row.result.values.get(goal.value)) for goal in goals if goal.value in row.result.values)
    return [(goal, _as_rate(value)) for goal, value in pairs]


def _as_rate(value: Value) -> Bounded:
    if isinstance(value, Spread) and value.passes_nothing:
        reason = f"{PASSES_NOTHING}: no frame came back in {value.n} of {value.runs} runs, and in no other is it known"
        return Bounded(value=None, reason_null=reason, passes_nothing=True)
    return value if isinstance(value, Bounded) else Bounded(value=number_of(value))


def _column_of(rates: Sequence[tuple[Goal, Bounded]]) -> Column:
    """Returns the column whose unit suits the rates of a row in a sentence."""
    greatest = max((rate.value or rate.upper or 0.0 for _, rate in rates), default=0.0)
    return Column(rates[0][0].value, "", form=suitable_form("mpps", greatest), aspect="rate")


def _rates_sentence(subject: str, section: Section) -> str:
    """Returns one sentence with the rate for each goal, then with what limited the rates."""
    row = section.rows[0]
    rates = _rates_of(section, row)
    if not rates:
        return f"{subject} was not measured at {size_name(row)} frames."
    column = _column_of(rates)
    sentences = []
    for number, (goal, rate) in enumerate(rates):
        what = f" of {size_name(row)} frames" if number == 0 else ""
        if rate.passes_nothing:
            text = f"{PASSES_NOTHING}{what} ({goal.name}: {why_nothing_passes(rate)})"
        elif rate.value is None:
            text = failing_clause(rate, goal, what, writer(column, [rate]), column.unit or "")
        else:
            text = passing_clause(rate, goal, what, writer(column, [rate]), column.unit or "", begins=number > 0)
        sentences.append(f"{subject} {text}." if number == 0 else f"{'' if text[:1].isupper() else 'It '}{text}.")
    limits = {rate.limited_by for _, rate in rates}
    if len(limits) == 1 and (limit := rates[0][1].limited_by):
        sentences.append(f"{capitalise(_LIMIT_CLAUSES[limit])}.")
    else:
        sentences += [
            f"The {goal.name} is {_LIMIT_CLAUSES[rate.limited_by]}." for goal, rate in rates if rate.limited_by
        ]
    if section.scope not in ("", "per port"):
        sentences.append(f"{section.table.basis_of} are {basis_words(section.scope)}.")
    return " ".join(sentences) + _caveat(row)


def _caveat(row: Row) -> str:
    said = caveat((row,))
    return f"{said.removeprefix('.')}." if said else ""


def largest_sentence(section: Section) -> str | None:
    """Returns the sentence about the largest frames; None where no rate of theirs is known."""
    row = section.rows[-1]
    found = next(((goal, rate) for goal, rate in _rates_of(section, row) if rate.value is not None), None)
    if found is None:
        return None
    goal, rate = found
    column = _column_of([found])
    write, unit = writer(column, [rate]), column.unit or ""
    if rate.loss_floor is not None:
        return f"{passing_clause(rate, goal, f' of {size_name(row)} frames', write, unit, begins=True)}.{_caveat(row)}"
    least = "line rate, " if rate.is_line_rate else "at least " if rate.at_least else ""
    passes = f"{least}{number_cell(rate, write)}{GAP}{unit} {goal.clause}"
    l2 = number_of(row.result.values.get(goal.value.replace("_frames_per_s", "_l2_bits_per_s")))
    bits = Column("l2_bits_per_s", "", form=suitable_form("gigabits", l2 or 0.0))
    on_layer_2 = "" if l2 is None or rate.is_zone else f", {writer(bits, [l2])(l2)}{GAP}{bits.unit} on layer 2"
    return f"With {size_name(row)} frames it passes {passes}{on_layer_2}.{_caveat(row)}"


def brief_rate(section: Section) -> str | None:
    """Returns the first rate of a section in a few words, for a list of runs: "NDR 400 kpps at 64 bytes"."""
    for row in section.rows:
        rates = _rates_of(section, row)
        if not rates or section.table.rates is None:
            continue
        goal, rate = rates[0]
        size = f"{row.cells[0]} bytes" if row.cells[0].isdigit() else row.cells[0]
        at = f" at {size}" if row.cells[0] != UNKNOWN else ""
        if rate.passes_nothing:
            return f"{PASSES_NOTHING}{at}"
        if rate.value is None and rate.upper is None:
            return f"no {goal.name} was found{at}"
        value = row.result.values.get(goal.value)
        greatest = value.magnitude if isinstance(value, Spread) else rate.value or rate.upper or 0.0
        column = Column(goal.value, "", form=suitable_form("mpps", greatest), aspect="rate")
        text = texts(column, [row.result], with_range=False)[0]
        of_runs = ""
        if isinstance(value, Spread):
            made = f"{value.runs}" if value.n == value.runs else f"{value.n} of {value.runs}"
            of_runs = f" (median of {made} runs)"
        return f"{goal.name} {text} {column.unit}{at}{of_runs}"
    return None


_MOST_NAMED = 5


def is_of_session(plan: Plan) -> bool:
    """Returns whether clients said what was sent."""
    kinds = find("nicbench.methods", Method)
    return any(kinds[test.method].of_sessions for test in plan.tests if test.method in kinds)


def headline(transmissions: Sequence[Trial], plan: Plan | None) -> str:
    """Returns the answer: how many of the frames were lost, over all transmissions, and where most were.

    What was under way when a transmission was cut off is not known, so the answer leaves it out.
    """
    cut = [transmission_number(trial) for trial in transmissions if is_cut_off(trial)]
    whole_ones = [trial for trial in transmissions if not is_cut_off(trial)]
    said = _say_lost(whole_ones, subject_in(plan, DEFAULT))
    if not cut:
        return said
    which = f"Transmission {cut[0]} was" if len(cut) == 1 else f"{len(cut)} transmissions were"
    return f"{said} {which} cut off: what was lost then is not known."


def is_cut_off(transmission: Trial) -> bool:
    """Returns whether the tester failed in the midst of it."""
    return Reason.TESTER_FAILED in transmission.verdict.reasons


def _say_lost(transmissions: Sequence[Trial], subject: str) -> str:
    counts = [trial.reading.counts for trial in transmissions]
    sent, lost = sum(each.sent for each in counts), sum(each.lost for each in counts)
    if not sent:
        return "No frame was counted: clients sent none, or only such as nobody receives or that have no metrics."
    uncounted = sum(each.sent for trial in transmissions if (each := trial.reading.uncounted) is not None)
    beside = f" What became of {whole(uncounted)} frames beside them was counted by nobody." if uncounted else ""
    what = "that clients sent through it" if len(counts) == 1 else f"that clients sent in {len(counts)} transmissions"
    if not lost:
        return f"{subject} lost none of the {whole(sent)} frames {what}.{beside}"
    worst = max(transmissions, key=lambda trial: trial.reading.counts.lost / max(1, trial.reading.counts.sent))
    share = f"{_percent(lost, sent)} of them"
    if len(counts) > 1:
        of_worst = worst.reading.counts
        share += f", most in transmission {transmission_number(worst)}: "
        share += f"{_percent(of_worst.lost, of_worst.sent)} of its frames"
    return f"{subject} lost {whole(lost)} of the {whole(sent)} frames {what} ({share}).{beside}"


def verdict_text(transmissions: Sequence[Trial], *, has_ended: bool) -> str:
    """Says what the verdict means. ``has_ended``: whether the session did, so that nothing follows."""
    if not has_ended:
        return (
            "The session has not ended: this is what was written so far. If its server was killed, “nicbench restore” "
            "restores the machine."
        )
    if not transmissions:
        return "Clients started no flow."
    invalid = [transmission_number(trial) for trial in transmissions if not trial.verdict.valid]
    if not invalid:
        return "In every transmission the tester kept its pace and nothing disturbed it."
    shown = ", ".join(map(str, invalid[:_MOST_NAMED])) + (", ..." if len(invalid) > _MOST_NAMED else "")
    were = "was" if len(invalid) == 1 else "were"
    return (
        f"{len(invalid)} of {len(transmissions)} transmissions {were} disturbed or cut off: {shown}. Their rows are "
        "marked *, with the reason: treat their numbers as indications, or send again on a quieter machine."
    )


def brief(results: Sequence[Result]) -> str | None:
    """Returns a few words for a list of runs; None where the results are not those of a session."""
    kinds = find("nicbench.methods", Method)
    rows = [result for result in results if result.method in kinds and kinds[result.method].of_sessions]
    if not rows:
        return None
    number = len({result.parameters.get("transmission") for result in rows})
    values = (result.values.get("loss_percent") for result in rows)
    losses = [float(value) for value in values if isinstance(value, float | int)]
    most = max(losses, default=None)
    lost = "" if most is None else ", nothing lost" if most == 0 else f", at most {format_ratio(most / 100)} lost"
    return f"{count_of(number, 'transmission')}{lost}"


def reliability(transmissions: Sequence[Trial]) -> str:
    """Says how many transmissions are judged, and what of them a verdict looks at."""
    invalid = sum(1 for trial in transmissions if not trial.verdict.valid)
    return (
        f"Transmissions: {len(transmissions)}; invalid because of the tester or of other load: {invalid}. None is "
        "repeated: clients say what is sent. The number of frames lost never makes a transmission invalid. Each is a "
        "trial in the tables below: t0001 is transmission 1."
    )


def transmission_number(transmission: Trial) -> int:
    """Returns the number of a transmission within its session."""
    return int(transmission.parameters["transmission"])


def _percent(part: int, whole_of: int) -> str:
    return format_ratio(part / max(1, whole_of))
