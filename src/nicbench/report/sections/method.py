"""How the clocks of a tester's two machines were compared: in words, and for each trial in numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from nicbench.core.clocks import ClockMapping
from nicbench.core.judging import OF_ROUNDS, REPEATS_OF_ROUNDS, REPEATS_OF_TRIALS
from nicbench.core.lists import grouped
from nicbench.core.plan import Plan
from nicbench.core.round import EndpointFacts
from nicbench.core.trial import Trial
from nicbench.core.units import count_of, format_bits_per_s, format_digits, format_duration_s
from nicbench.report import facts as facts_of_plan
from nicbench.report.answer.sentences import reliability
from nicbench.report.diagram import pictures
from nicbench.report.document.blocks import Block, Cell, Fact, Facts, FoldedBlocks, Row
from nicbench.report.document.making import (
    Optional,
    breakable,
    caption,
    cell,
    code,
    head,
    heading,
    heads,
    inlines,
    listing,
    name,
    paragraph,
    set_tone,
    strong,
    table,
    word_heads,
    words,
)
from nicbench.report.facts import label_of, method_shapes, of_configurations, threshold_why
from nicbench.report.model import CALIBRATION, Report, place_of
from nicbench.report.numbers import UNKNOWN, microseconds, mpps, mpps_decimals, share, threshold, whole
from nicbench.report.study import procedure_of
from nicbench.report.wiring import wirings

_BY: Mapping[str, str] = MappingProxyType(
    {
        "test links": "by frames that went both ways over the test links",
        "control path": "by questions for the time that the controller asked both machines",
        "ptp": "by PTP, to which the clocks of both machines are synchronised",
    }
)


def clocks(trials: Iterable[Trial]) -> Iterator[Block]:
    """Yields what is known of the clocks of both machines; nothing where the tester is on one."""
    mapped = [(trial.id, trial.reading.clocks) for trial in trials if trial.reading.clocks is not None]
    if not mapped:
        return
    yield heading(3, "Clocks of the two tester machines")
    yield paragraph(_say([mapping for _, mapping in mapped]))
    yield from (paragraph(said) for said in _say_ptp([mapping for _, mapping in mapped]))
    yield caption(
        "Half of the difference between the fastest frame there and the fastest one back is the offset; half of their "
        "sum bounds its error, for a slower way there cannot be told from a slower way back. The offset at the trial’s "
        "begin and the drift are of the line through earlier comparisons, by which its latencies were taken; how far "
        "the comparisons before and after the trial were from that line is its error. A latency’s uncertainty is the "
        "sum of both, and of the time that a burst takes."
    )
    titles = (
        head("Trial"),
        *heads("Compared by"),
        head("Offset", "ns"),
        head("Drift", "ppm"),
        head("Asymmetry at most", "µs"),
        head("Line missed by", "µs"),
        head("Uncertainty", "µs"),
        head("Comparisons"),
    )
    rows = table((titles,), (_row(trial, mapping) for trial, mapping in mapped))
    yield FoldedBlocks(inlines("The comparison of the clocks around each trial"), (rows,), is_detail=True)


def _say(mappings: Sequence[ClockMapping]) -> str:
    how = " or ".join(_BY.get(by, by) for by in dict.fromkeys(mapping.by for mapping in mappings))
    drifts = [mapping.drift_ppm for mapping in mappings]
    bounds = [mapping.asymmetry_bound_ns for mapping in mappings]
    misses = [mapping.fit_error_ns for mapping in mappings]
    gained, asymmetry = _range(drifts, 1, "ppm"), _range(bounds, 1000, "µs")
    return (
        "Frames are sent by one machine and received by the other, which have a clock each. These were compared before "
        f"and after each trial, {how}. The second clock gained {gained} on the first. Latencies are wrong by at most "
        f"{asymmetry} because both ways may differ, and by {_range(misses, 1000, 'µs')} because the clocks did not "
        "follow their line."
    )


def _say_ptp(mappings: Sequence[ClockMapping]) -> Iterator[str]:
    """A sentence for each machine that PTP synchronises, with the extremes over all trials."""
    states = [state for mapping in mappings for state in mapping.ptp]
    for host in dict.fromkeys(state.host for state in states):
        own = [state for state in states if state.host == host]
        offset = max((state.offset_ns for state in own), key=abs)
        system = max((state.system_ns or 0.0 for state in own), key=abs)
        path = max(state.path_delay_ns for state in own)
        yield (
            f"PTP on {host}: {own[0].state} of {own[0].grandmaster}, {own[0].stamping.lower()} stamps. In the trials "
            f"its clock was off its master’s by {offset:g} ns at most, over a path of {path:g} ns, and the system’s "
            f"clock off its own by {system:g} ns."
        )


def _range(values: Sequence[float], scale: int, unit: str) -> str:
    low, high = (format_digits(value / scale) for value in (min(values), max(values)))
    return f"{low} {unit}" if low == high else f"{low} to {high} {unit}"


def _row(trial: str, mapping: ClockMapping) -> Iterator[Cell]:
    yield name(trial)
    yield cell(mapping.by)
    yield cell(whole(mapping.offset_ns))
    yield cell(f"{mapping.drift_ppm:.2f}")
    yield cell(f"± {microseconds(mapping.asymmetry_bound_ns)}")
    yield cell(f"± {microseconds(mapping.fit_error_ns)}")
    yield cell(f"± {microseconds(mapping.uncertainty_ns)}")
    yield cell(str(mapping.comparisons))


def method(report: Report) -> Iterator[Block]:
    """Yields the method section of a run that nicbench measured."""
    yield heading(2, "What was tested", id="tested")
    if report.plan:
        drawn = tuple(pictures(wirings(report.plan, report.bonds)))
        yield from drawn or (paragraph("The plan does not say what was cabled."),)
    else:
        yield paragraph("The run ended before its plan was written.")
    if report.endpoints:
        yield from endpoints(report.endpoints, report.plan)
    planned = of_configurations(report.plan, "tests") if report.plan else ()
    alike = grouped(((test.name, procedure_of(test)), (names, test)) for names, plan in planned for test in plan.tests)
    for (test_name, procedure), variants in alike.items():
        yield heading(2, f"Test “{test_name}”")
        yield paragraph(procedure)
        told = [
            (
                f" ({names})" if names else "",
                {
                    **({} if test.method == test.name else {"method": test.method}),
                    **facts_of_plan.asked_options(
                        facts_of_plan.in_bits(test.options) if report.endpoints else test.options
                    ),
                },
            )
            for names, test in variants
        ]
        for names, parameters in in_turn(told):
            shown = facts(parameters, shapes=method_shapes(variants[0][1].method))
            yield FoldedBlocks(inlines(f"Parameters of test “{test_name}”{names}"), (shown,))
    yield heading(2, "Reliability")
    yield from trust_rounds(report) if report.rounds else trust_trials(report)
    yield from clocks(trial for trials in report.groups.values() for trial in trials)
    yield from thresholds(report)
    yield from tester_limits(report)
    if report.notes:
        yield heading(3, "Notes of the run")
        yield listing(
            inlines(None if note.level == "info" else strong(note.level, "warn"), " ", note.text)
            for note in report.notes
        )
    yield from deviations(report)


def in_turn(told: Sequence[tuple[str, Mapping[str, Any]]]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yields the facts of several configurations with their names: the first whole, of the others what differs."""
    for number, (names, values) in enumerate(told):
        if number == 0:
            yield names, values
        elif differs := facts_of_plan.differing(told[0][1], values):
            yield f"{names}: what differs", differs


def facts(*values: Mapping[str, Any], shapes: facts_of_plan.Shapes = MappingProxyType({})) -> Facts:
    """Returns the values of all mappings in order, with their labels; ``shapes`` has what is declared of them."""
    return Facts(tuple(_fact(each) for mapping in values for each in facts_of_plan.facts(mapping, shapes)))


def _fact(fact: facts_of_plan.Fact) -> Fact:
    beside = None
    if fact.heads:
        body = ((name(breakable(label)), *map(cell, texts)) for label, texts in fact.rows)
        beside = table(((cell(), *map(head, fact.heads)),), body, "facts")
    return Fact(
        inlines(breakable(fact.label)),
        inlines(fact.text),
        fact.code,
        tuple(map(_fact, fact.children)),
        beside,
    )


_ENDPOINT_COLUMNS: Mapping[str, Callable[[EndpointFacts], object]] = {
    "Host": lambda end: end.host,
    "Machine": lambda end: end.machine,
    "Namespace": lambda end: None,
    "Interface": lambda end: end.device,
    "Address": lambda end: end.address,
    "Link": lambda end: None if end.link_bits_per_s is None else format_bits_per_s(end.link_bits_per_s),
    "Card": lambda end: end.card,
    "NUMA\nnode": lambda end: end.numa_node,
}


def endpoints(ends: Sequence[EndpointFacts], plan: Plan | None) -> Iterator[Block]:
    """Yields the table that shows which client leads to which port of the measured host."""
    spaces: Mapping[str, str] = (plan.facts.get("namespaces") or {}) if plan else {}
    columns = {}
    for title, told in _ENDPOINT_COLUMNS.items():
        found = [spaces.get(end.host) if title == "Namespace" else told(end) for end in ends]
        texts = [UNKNOWN if each is None or each == "" else str(each) for each in found]
        if set(texts) != {UNKNOWN} and (title != "Machine" or len(set(texts)) > 1):
            columns[title] = texts
    yield caption("Each port of the measured host, and below it the clients that lead to it.")
    body = (
        Row(
            (
                name(*((set_tone("└", "quiet"), " ") if end.port else ()), end.name),
                *(words(texts[at]) for texts in columns.values()),
            ),
            "" if end.port else "server",
        )
        for at, end in enumerate(ends)
    )
    yield table(((head("Port"), *word_heads(*columns)),), body, "testbed")


def trust_trials(report: Report) -> Iterator[Block]:
    """Yields a paragraph on how many trials were made and how many of them were invalid."""
    if report.transmissions is not None:
        yield paragraph(reliability(report.transmissions))
        return
    trials, policy = list(report.known_trials.values()), REPEATS_OF_TRIALS
    measuring = [trial for trial in trials if trial.request.purpose not in CALIBRATION]
    calibrating = [trial for trial in trials if trial.request.purpose in CALIBRATION]
    invalid, of_tester = ([trial for trial in some if not trial.verdict.valid] for some in (measuring, calibrating))
    results = (*(row.result for section in report.sections for row in section.rows), *report.other_results)
    behind = {trial for result in results for trial in result.trials}
    used = sum(trial.id in behind for trial in invalid)
    calibrated = f" and {len(calibrating)} calibrated the tester" if calibrating else ""
    took = "" if report.measured_s is None else f", in {format_duration_s(report.measured_s)}"
    of_calibrating = f" and {len(of_tester)} of the calibrating" if calibrating else ""
    yield paragraph(
        f"{len(measuring)} trials measured the DUT{calibrated}{took}. {len(invalid)} of the measuring"
        f"{of_calibrating} trials were invalid because of the tester or of other load. An invalid trial is repeated "
        f"at most {policy.maximum_repeats} times, in at most {share(policy.budget_share)} of a test’s time, or "
        f"{policy.least_s:g} s; then the least disturbed one is used, and its results are marked: {used} here. "
        "Lost frames never make a trial invalid."
    )


def trust_rounds(report: Report) -> Iterator[Block]:
    """Yields a paragraph on how many rounds were played, how many went wrong, and what is checked in each."""
    rounds = [one for members in report.rounds.values() for one in members]
    bad, total = sum(not one.verdict.valid for one in rounds), len(rounds)
    took = "" if report.measured_s is None else f", in {format_duration_s(report.measured_s)}"
    yield paragraph(
        f"{total} rounds were played{took}; in {bad} of them a tool failed or something disturbed a machine. Such a "
        f"round is repeated at most {REPEATS_OF_ROUNDS.maximum_repeats} times, where a repeat may help and a test’s "
        "time allows it; after that the one with the fewest failures is used, and the results that depend on it "
        "are marked. "
        f"{report.rounds_used} such {'round was' if report.rounds_used == 1 else 'rounds were'} used. Whether a round "
        "is valid never depends on how much was moved."
    )
    yield paragraph(
        "Throughputs are those that the tools report; they are rejected where they exceed the link or contradict "
        "themselves. The counters of every interface are listed with the rounds below. What limited a rate follows "
        "from the link speeds and from the CPUs of all machines, which a monitor records."
    )
    if report.tools:
        yield heading(3, "Tools")
        yield table(
            ((head("Tool"), head("Version"), head("How it was called first")),),
            (
                (
                    name(tool.name),
                    cell(", ".join(tool.versions) or "unknown"),
                    cell(code(tool.example) if tool.example else "not run"),
                )
                for tool in report.tools
            ),
            "facts",
        )


def thresholds(report: Report) -> Iterator[Block]:
    """Yields the thresholds beyond which a trial or a round is invalid: those that this run passed, or its bench file
    sets, as a table, and how many others there are.
    """
    every = report.plan.thresholds if report.plan else ()
    rounds = (one for members in report.rounds.values() for one in members)
    judged = (*report.known_trials.values(), *rounds)
    passed = {finding.threshold for one in judged for finding in one.verdict.findings}
    asked = [row for row in every if not report.rounds or row.name in OF_ROUNDS]
    rows = [row for row in asked if row.name in passed or row.value != row.default]
    if asked:
        shown = table(
            (word_heads("Threshold", "Limit", "Why"),),
            (
                (
                    name(label_of(row.name), words=True),
                    words(threshold(row.value, row.unit)),
                    words(threshold_why(row.why, report.gap_floor_ns)),
                )
                for row in rows
            ),
            caption=f"A {'round' if report.rounds else 'trial'} is invalid when a threshold is passed.",
        )
        rest = len(asked) - len(rows)
        others = caption(f"{count_of(rest, 'other threshold')}: at the default, and not passed in any trial.")
        yield FoldedBlocks(inlines("Thresholds"), (shown, others) if rows else (others,), is_detail=True)


def tester_limits(report: Report) -> Iterator[Block]:
    """Yields the table of what the tester itself achieves without the DUT: its ceiling and its latency."""
    ceilings = {place_of(found): found for found in report.ceilings}
    latencies = {place_of(found): found for found in report.own_latencies}
    places = sorted({*ceilings, *latencies})
    if not places:
        return
    compared = report.comparison
    learnt = any(not found.calibrated for found in report.ceilings)
    decimals = mpps_decimals(found.ceiling_frames_per_s for found in report.ceilings)

    def limits(place: tuple[float, str, str, int]) -> Iterator[Optional]:
        ceiling, latency = ceilings.get(place), latencies.get(place)
        frame_bytes, mix, configuration, run = place
        yield compared is not None and words(configuration if compared.runs == 1 else f"{configuration}, run {run}")
        yield name(mix or f"{frame_bytes:g}")
        yield cell(mpps(ceiling.ceiling_frames_per_s if ceiling else None, decimals))
        yield bool(latencies) and cell(microseconds(latency.latency_p50_ns if latency else None))
        is_learnt = ceiling is not None and not ceiling.calibrated
        yield learnt and words(f"learnt from a shortfall: {ceiling.text}" if ceiling and is_learnt else "")

    titles = (
        *word_heads(compared is not None and "Run"),
        head("Frame", "bytes"),
        head("Ceiling", "Mpps"),
        bool(latencies) and head("Latency,\nmedian [µs]"),
        *word_heads(learnt and "How it is known"),
    )
    yield heading(3, "The tester’s own limits")
    yield caption(
        f"Measured without a DUT, before the first test{', unless the last column says otherwise' if learnt else ''}."
    )
    yield table((titles,), map(limits, sorted(places, key=lambda place: place[2:])))


def deviations(report: Report) -> Iterator[Block]:
    """Yields the list of points in which the run does less than a standard asks for."""
    each = of_configurations(report.plan, "deviations") if report.plan else ()
    first = each[0][1].deviations if each else ()
    common = [text for text in first if all(text in plan.deviations for _, plan in each)]
    if any(plan.deviations for _, plan in each):
        yield heading(2, "Deviations from the standards", id="deviations")
        yield listing(_of_tests(common))
    for whose, plan in each:
        if own := [text for text in plan.deviations if text not in common]:
            yield caption(f"Of {whose} alone:")
            yield listing(_of_tests(own))


def _of_tests(deviations: Iterable[str]) -> Iterator[str]:
    """Yields each deviation once, after the names of all tests that have it."""
    for text, tests in grouped((text, test) for test, _, text in (one.partition(": ") for one in deviations)).items():
        yield f"{', '.join(tests)}: {text}"
