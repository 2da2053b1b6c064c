"""The tables of trials for the appendix: trials in detail, where frames were lost, and the state of the hardware.

In detail: order, copies, corruption, variation and the rate over time, with one trial for each point measured. Losses:
a row for each trial with loss, a column for each place, from sender to receiver. Hardware: which counters rose, in how
many trials; temperatures and power.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from nicbench.core.frame_size import label_of
from nicbench.core.judging import ADJUSTED_FOR, Finding, Reason
from nicbench.core.lists import grouped
from nicbench.core.reading import (
    Capture,
    HealthEvent,
    HealthLevel,
    Intervals,
    MachineHealth,
    Measure,
)
from nicbench.core.result import Result, title_of_test
from nicbench.core.trial import LossPlace, Purpose, Trial
from nicbench.core.units import count_of, format_digits
from nicbench.report import facts
from nicbench.report.document.blocks import Block, Cell, Drawing, FoldedBlocks, Group, Note, plain
from nicbench.report.document.making import (
    BREAK,
    NOTHING,
    Part,
    about_row,
    caption,
    cell,
    file_link,
    head,
    heading,
    heads,
    inlines,
    listing,
    name,
    paragraph,
    row,
    set_tone,
    strong,
    table,
    word_heads,
    words,
)
from nicbench.report.numbers import UNKNOWN, microseconds, mpps, percent, share, significant, whole
from nicbench.report.wording import first_few
from nicbench.stats.ports import find_telling_trial

_WIDTH, _HEIGHT = 132, 26
_USUAL_N = 3


def n_reordered(trial: Trial) -> tuple[int, ...]:
    """Returns the frames of all streams that arrived behind n or more with greater sequence numbers, for n from 1 on;
    nothing where the column for three already says all.
    """
    parts = [stream.reordering for stream in trial.reading.streams if stream.reordering]
    most = max((len(part.n_reordered) for part in parts), default=0)
    padded = [(*part.n_reordered, *[0] * (most - len(part.n_reordered))) for part in parts]
    return tuple(map(sum, zip(*padded, strict=True))) if most > _USUAL_N else ()


def received_over_time(parts: Sequence[Intervals]) -> tuple[Drawing, str] | None:
    """Returns the received frames of all streams over time, as a line in the colours of the page with a mark where
    frames were missing, and from which rate to which it goes. The last interval, which the end of the trial cuts short,
    is left out. None for fewer than two others or where nothing was received in them.
    """
    width_ns = max((part.interval_ns for part in parts), default=0)
    same = [part for part in parts if part.interval_ns == width_ns]
    length = max((len(part.received) for part in same), default=0) - 1
    received, missing = (
        [sum(each[at] for each in counts if at < len(each)) for at in range(length)]
        for counts in ([part.received for part in same], [part.missing for part in same])
    )
    if len(received) < 2 or max(received) == 0:
        return None
    step, top = _WIDTH / (len(received) - 1), max(received)
    points = " ".join(
        f"{at * step:.1f},{_HEIGHT - 2 - (_HEIGHT - 4) * count / top:.1f}" for at, count in enumerate(received)
    )
    places = (round(at * step, 1) for at, count in enumerate(missing) if count > 0)
    marks = "".join(
        f'<line x1="{at}" x2="{at}" y1="0" y2="{_HEIGHT}" stroke="var(--series-2, #d55e00)" stroke-width="1"/>'
        for at in places
    )
    lowest, highest = (mpps(count * (1e9 / width_ns), 3) for count in (min(received), top))
    label = f"received frames in each {width_ns / 1e6:g} ms, {lowest} to {highest} Mpps"
    line = f'<polyline points="{points}" fill="none" stroke="var(--series-1, #0072b2)" stroke-width="1.4"/>'
    size = f'viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}"'
    svg = f'<svg class="spark" {size} role="img" aria-label="{label}">{marks}{line}</svg>'
    return Drawing(svg, label), lowest if lowest == highest else f"{lowest} to {highest}"


_NOT_OF_THE_DUT = (Purpose.CEILING, Purpose.TESTER_LATENCY, Purpose.MEMBERSHIP)


def lossy_trials(trials: Iterable[Trial]) -> tuple[Trial, ...]:
    """Returns the trials that lost frames and whose counters were read. In calibration, frames end in a sink, which
    does not count as loss.
    """
    return tuple(
        trial
        for trial in trials
        if trial.request.purpose not in _NOT_OF_THE_DUT
        and trial.reading.unexplained is not None
        and (trial.reading.counts.lost > 0 or trial.reading.ledger_faults)
    )


def count_lost(trials: Iterable[Trial]) -> tuple[int, int]:
    """Returns how many frames all trials lost, and how many of them no counter explains; a surplus in one trial does
    not make up for another.
    """
    readings = [trial.reading for trial in trials]
    return sum(each.counts.lost for each in readings), sum(max(0, each.unexplained or 0) for each in readings)


def lost_places(trials: Iterable[Trial]) -> dict[str, list[LossPlace]]:
    """Returns the places where frames were lost, from sender to receiver, with what was lost there."""
    found = grouped((place_name(place), place) for trial in trials for place in _lost_places(trial))
    return dict(sorted(found.items(), key=lambda item: item[1][0].stage))


def place_name(row: LossPlace) -> str:
    """Returns the name of a place; the DUT's own counters, which share one place, go by their names."""
    backlog = re.fullmatch(r"softnet_backlog cpu(\d+)", row.counter)
    if backlog and row.place == "DUT":
        return f"DUT, backlog of CPU {backlog[1]}"
    return f"DUT, {row.counter}" if row.place == "DUT" else row.place


def _lost_places(trial: Trial) -> tuple[LossPlace, ...]:
    return tuple(row for row in trial.reading.ledger if not row.unsent)


PRINTED_TRIALS = 400
"""A table with more trials would fill over a dozen sheets and is printed only if the reader has unfolded it."""
_MOST_FAULTS = 8
_MOST_COUNTERS = 6
_MOST_BESIDE = 12


def every_trial(groups: Mapping[str, Sequence[Trial]]) -> Iterator[Block]:
    """Yields how many trials each test made, and, folded, those that something disturbed or that were adjusted for."""
    if not groups:
        return
    told = {test: [trial for trial in trials if trial.verdict.findings] for test, trials in groups.items()}
    every, found = (sum(map(len, some.values())) for some in (groups, told))
    yield heading(2, "Trials", id="trials")
    yield caption(
        inlines(
            f"{count_of(every, 'trial')}, {found} of them disturbed or adjusted for. All are in ",
            file_link("trials.parquet"),
            ".",
        )
    )
    if not found:
        return
    about = caption("Load is per port; a verdict names the thresholds passed.")
    yield Group((about, *(_trials(test, groups[test], trials) for test, trials in told.items() if trials)), "trials")


_COLUMNS = (
    head("Trial"),
    Cell(inlines("Purpose"), is_head=True, words=True, look="short"),
    head("Frame", "bytes"),
    head("Load", "kpps"),
    head("Lost", "%"),
    *word_heads("Verdict"),
)


def _trials(test: str, every: Sequence[Trial], trials: Sequence[Trial]) -> Block:
    bad = sum(not trial.verdict.valid for trial in trials)
    of = f"{test}: {len(trials)} of {count_of(len(every), 'trial')}{f', {bad} invalid' if bad else ''}"
    has_purposes = len({trial.request.purpose for trial in trials}) > 1
    titles = _COLUMNS if has_purposes else (_COLUMNS[0], *_COLUMNS[2:])
    body = (
        row(*_trial(trial, has_purpose=has_purposes), look="" if trial.verdict.valid else "invalid") for trial in trials
    )
    return FoldedBlocks(
        inlines(of),
        (table((titles,), body),),
        is_for_screens=len(trials) > PRINTED_TRIALS,
        is_detail=True,
    )


def _trial(trial: Trial, *, has_purpose: bool) -> Iterator[Cell]:
    yield name(trial.id, f", repeat {trial.repeat}" if trial.repeat else None)
    if has_purpose:
        yield Cell(inlines(facts.label_of(trial.request.purpose.value)), words=True, look="short")
    yield cell(_size(trial))
    yield cell(_load(trial))
    yield cell(percent(100 * trial.reading.counts.loss_ratio) if trial.reading.is_counted else UNKNOWN)
    told = "; ".join(map(_brief, trial.verdict.findings))
    yield words(f"adjusted: {told}" if trial.verdict.adjusted else told)


def _brief(finding: Finding) -> str:
    """Writes a finding that is only a value beyond its threshold by the name of that threshold."""
    if finding.reason not in ADJUSTED_FOR:
        return finding.text
    value = f"{finding.value:.1f} ms" if finding.threshold.endswith("_ms") else share(finding.value)
    return f"{facts.label_of(finding.threshold)} {value}"


def _size_of(trial: Trial) -> str:
    return label_of(trial.parameters) or f"{trial.request.frame_bytes:g}"


def _size(trial: Trial) -> str:
    return trial.request.mix.name if trial.request.mix else str(trial.request.frame_bytes)


def _load(trial: Trial) -> str:
    load = trial.request.load_frames_per_s
    return "full" if load is None else format_digits(load / 1e3, 5)


def ledger(lossy: Sequence[Trial], groups: Mapping[str, Sequence[Trial]]) -> Iterator[Block]:
    """Yields the loss ledger: a row for each frame size of a test, and one for each trial with unexplained losses; a
    column for each place of loss, in the order of the path. ``groups`` has the trials of each test.
    """
    if not lossy:
        return
    faults = [(trial.id, fault) for trial in lossy for fault in trial.reading.ledger_faults]
    lost, unexplained = count_lost(lossy)
    summary = f" Every one of the {whole(lost)} lost frames is accounted for."
    if unexplained:
        summary = f" Of {whole(lost)} lost frames {whole(unexplained)} are unexplained."
    told = caption(
        "By counters on every host of the path, before and after each trial; a frame that several saw is counted "
        f"once.{'' if faults else summary}"
    )
    places = {name: list(dict.fromkeys(loss.counter for loss in losses)) for name, losses in lost_places(lossy).items()}
    tests = {trial.id: test for test, trials in groups.items() for trial in trials}
    rows = grouped(
        (
            (f"{tests.get(trial.id, trial.test)}{f', {trial.id}' if trial.reading.unexplained else ''}", _size(trial)),
            trial,
        )
        for trial in lossy
    )
    whole_ledger = FoldedBlocks(
        inlines(f"Loss ledger: {count_of(len(lossy), 'trial')}"),
        (_ledger_table(rows, places), *_ledger_notes(lossy, places)),
        is_for_screens=len(rows) > PRINTED_TRIALS,
        is_detail=True,
    )
    yield Group(
        (heading(2, "Where frames were lost", id="ledger"), told, *_ledger_faults(faults), whole_ledger), "trials"
    )


def _ledger_faults(faults: Sequence[tuple[str, str]]) -> Iterator[Block]:
    if faults:
        trials = len({trial for trial, _ in faults})
        first = paragraph(
            strong(f"The ledger is not reliable in {count_of(trials, 'trial')}:"),
            " counters contradict each other or could not be read. The counts of the trials stand.",
        )
        told = [paragraph(f"{trial}: {fault}.") for trial, fault in faults[:_MOST_FAULTS]]
        more = len(faults) - _MOST_FAULTS
        yield Note((first, *told, *([paragraph(f"And {more} more.")] if more > 0 else [])))


def _ledger_table(rows: Mapping[tuple[str, str], Sequence[Trial]], places: Mapping[str, Sequence[str]]) -> Block:
    def of_trials(test: str, size: str, trials: Sequence[Trial]) -> Iterator[Cell]:
        lost, unexplained = count_lost(trials)
        yield name(test, words=True)
        yield cell(size)
        yield cell(str(len(trials)), tone="quiet")
        yield cell(whole(lost))
        at = {place: sum(loss.frames for loss in losses) for place, losses in lost_places(trials).items()}
        yield from (cell(whole(at[place]) if place in at else set_tone("·", "quiet")) for place in places)
        yield cell(whole(unexplained), tone="warn" if unexplained else "")

    span = "lost at, from sender to receiver →"
    over = (*[NOTHING] * 4, *((head(span, columns=len(places)),) if places else ()), NOTHING)
    columns = (
        head("Test", words=True),
        head("Frame", "bytes"),
        *heads("Trials", "Lost"),
        *(Cell(inlines(place), is_head=True, title=", ".join(counters)) for place, counters in places.items()),
        head("Unexplained"),
    )
    return table((over, columns), (of_trials(*row, trials) for row, trials in rows.items()), "ledger")


def _ledger_notes(lossy: Sequence[Trial], places: Mapping[str, Sequence[str]]) -> Iterator[Block]:
    told = "".join(f"{place}: {first_few(counters, _MOST_COUNTERS)}. " for place, counters in places.items())
    yield caption(told.strip())
    # Where everything is explained, these add nothing: a policer counts by itself what its driver counts too.
    beside = [(trial.id, row) for trial in lossy if trial.reading.unexplained for row in trial.reading.ledger_beside]
    if beside:
        said = [f"{trial}, {loss.place}: {whole(loss.frames)} by {loss.counter} ({loss.why})" for trial, loss in beside]
        told = first_few(said, _MOST_BESIDE, "; ", "; and {} more")
        yield caption(f"Counters that also rose, and explain no loss by themselves: {told}.")


def hardware(trials: Iterable[Trial]) -> Iterator[Block]:
    """Yields what the hardware of the hosts reported about itself; nothing where it was not read, as in a simulated
    run.
    """
    asked = [(trial, trial.reading.machine) for trial in trials if trial.reading.machine is not None]
    if asked:
        yield Group(tuple(_hardware(asked)))


def _hardware(asked: Sequence[tuple[Trial, MachineHealth]]) -> Iterator[Block]:
    events = grouped(
        ((event.host, event.where, event.what), (trial, event)) for trial, machine in asked for event in machine.events
    )
    levels = grouped(((level.host, level.where, level.unit), level) for _, machine in asked for level in machine.levels)
    times = [machine.reading_ms for _, machine in asked if machine.reading_ms is not None]
    took = f" Reading took {sum(times) / len(times):.0f} ms a trial." if times else ""
    calm = "" if events else f" No counter rose in {whole(len(asked))} trials."
    yield heading(2, "Health of the hardware")
    yield caption(
        f"Counters of PCIe errors, link errors, link changes and throttling, before and after each trial.{calm}{took}"
    )
    if events:
        titles = (head("What rose", words=True), *heads("By", "In trials"), head("Verdict", words=True))
        yield table((titles,), map(_event_row, events.values()))
    if levels:
        titles = (head("Part", words=True), *heads("Least", "Greatest", "Its own limit"))
        yield table((titles,), map(_level_row, levels.values()))
    else:
        yield caption("No host reports temperature or power.")
    unread = dict.fromkeys(reason for _, machine in asked for reason in machine.unread)
    if unread:
        yield caption(f"Not available: {'; '.join(unread)}.")


def _event_row(rows: Sequence[tuple[Trial, HealthEvent]]) -> tuple[Cell, ...]:
    """Returns one counter of one component: how much it rose, in which trials, and how many of them it made invalid."""
    event = rows[0][1]
    amounts = [one.amount for _, one in rows]
    # A share belongs to one trial, so the worst one stands for all.
    by = f"{100 * max(amounts):.1f} %" if event.unit == "share" else f"{whole(sum(amounts))} {event.unit}"
    names = [trial.id for trial, _ in rows]
    reasons = (Reason.HARDWARE, Reason.LINK_CHANGED)
    invalid = sum(
        any(one.reason in reasons and one.threshold == event.measure.value for one in trial.verdict.findings)
        for trial, _ in rows
    )
    # Corrected blocks have no threshold, because they indicate no loss.
    is_harmless = event.measure is Measure.FEC_CORRECTED
    harmless = "of interest: corrected blocks lose nothing" if is_harmless else "a warning: below its threshold"
    return (
        name(f"{event.host}, {event.where}: {event.what}", words=True),
        cell(by),
        cell(f"{len(names)} ({', '.join(names[:3])}{', ...' if len(names) > 3 else ''})"),
        words(set_tone(f"made {invalid} invalid", "warn") if invalid else harmless),
    )


def _level_row(rows: Sequence[HealthLevel]) -> tuple[Cell, ...]:
    """Returns the lowest and the highest value of a temperature or power over the trials."""
    level, values = rows[0], [row.value for row in rows]
    unit = "°C" if level.unit == "C" else level.unit
    return (
        name(f"{level.host}, {level.where}", words=True),
        cell(f"{min(values):.1f} {unit}"),
        cell(f"{max(values):.1f} {unit}"),
        cell(UNKNOWN if level.limit is None else f"{level.limit:.0f} {unit}"),
    )


def telling_trials(
    results: Iterable[Result], tests: Mapping[str, str], trials: Mapping[str, Trial]
) -> dict[str, list[Trial]]:
    """Returns the trial behind each result by test; ``tests`` maps the id of a result to the name of its test. Results
    whose engine reported no details are left out.
    """
    behind = (
        (title_of_test(result, tests), find_telling_trial([trials[name] for name in result.trials if name in trials]))
        for result in results
    )
    return grouped(
        (test, trial) for test, trial in behind if trial and any(stream.flows for stream in trial.reading.streams)
    )


def frame_by_frame(tables: Mapping[str, Sequence[Trial]], trials: Iterable[Trial]) -> Iterator[Block]:
    """Yields what the receiver saw in single trials of each test, frame by frame, folded."""
    captures = [trial.reading.capture for trial in trials if trial.reading.capture]
    if not tables and not captures:
        return
    counts = [trial.reading.counts for members in tables.values() for trial in members]
    is_broken = any(one.corrupted or one.unattributed for one in counts)
    broken = "; a broken payload makes a frame corrupted, a broken signature unattributed" if is_broken else ""
    is_behind = any(one.reordered for one in counts)
    overtook = "Extent: how many frames came since the first that overtook (RFC 4737, 4.2). " if is_behind else ""
    told = caption(
        "The trial of each point that failed least, at the highest load. "
        f"{overtook}IPDV: difference, without sign, between latencies of consecutive frames of a flow (RFC 5481, "
        f"4.1). Checked: bytes of each frame that are compared with what was sent{broken}."
    )
    files = (
        (FoldedBlocks(inlines(f"Captured frames: {len(captures)} files"), (listing(map(_capture, captures)),)),)
        if captures
        else ()
    )
    yield Group((heading(2, "Frame by frame"), told, *(_details(tables) if tables else ()), *files), "trials")


def _capture(capture: Capture) -> Part:
    if capture.error:
        return f"{capture.name}: {capture.error}"
    jumps = f", around {whole(capture.jumps)} losses" if capture.jumps else ""
    truncated = "; more were left out" if capture.truncated else ""
    return inlines(file_link(capture.name), f": {whole(capture.frames)} frames{jumps}{truncated}")


_DETAILS = (
    head("Trial"),
    head("Frame", "bytes"),
    head("Load", "kpps"),
    *heads("Lost", "Dupli-\ncated", "Re-\nordered", "Extent,\nmean / max", "Behind\n≥ 3", "Cor-\nrupted"),
    head("Unattri-\nbuted"),
    head("Checked", "bytes"),
    head("IPDV mean", "µs"),
    head("IPDV max", "µs"),
    head("Flows\nwith loss"),
    head("Received over time", "Mpps"),
)
_FAULTS = frozenset({*range(3, 10), 13})
"""The columns of faults that few trials have."""
_BEHIND = frozenset({6, 7})
"""The columns of how far frames came behind."""


def _details(tables: Mapping[str, Sequence[Trial]]) -> Iterator[Block]:
    """Yields the table of the trials behind the results, with a heading for each test, and notes beneath it."""
    trials = [trial for members in tables.values() for trial in members]
    in_order = not any(trial.reading.counts.reordered != 0 for trial in trials)
    every = [tuple(detail_row(trial)) for trial in trials]
    kept = [
        place
        for place in range(len(_DETAILS))
        if not (in_order and place in _BEHIND)
        and (place not in _FAULTS or any(plain(cells[place].inlines) != "0" for cells in every))
    ]
    titles, *cells = [[cells[place] for place in kept] for cells in (_DETAILS, *every)]
    rows = iter(cells)
    body = [
        each
        for test, members in tables.items()
        for each in (about_row(test, len(titles)), *(row(*next(rows)) for _ in members))
    ]
    notes = (
        caption(
            f"{_size_of(trial)}, {trial.id}: frames right behind n or more with greater sequences (n-reordering, "
            f"RFC 4737, 5.3), for n = 1 to {len(counts)}: {', '.join(map(whole, counts))}."
        )
        for trial in trials
        if (counts := n_reordered(trial))
    )
    summary = inlines(f"{count_of(len(trials), 'trial')}, for each point one")
    yield FoldedBlocks(summary, (table((titles,), body), *notes), is_detail=True)


def detail_row(trial: Trial) -> Iterator[Cell]:
    """Yields the cells of one trial. Numbers are summed over its streams, or are the maximum of them."""
    counts, streams = trial.reading.counts, trial.reading.streams
    reorderings = [stream.reordering for stream in streams if stream.reordering]
    variations = [stream.variation for stream in streams if stream.variation]
    checked = [stream.checked_bytes for stream in streams if stream.checked_bytes is not None]
    yield name(trial.id)
    yield cell(_size_of(trial))
    yield cell(_load(trial))
    yield from (cell(whole(count)) for count in (counts.lost, counts.duplicated, counts.reordered))
    measured = sum(found.measured for found in reorderings)
    extents = sum((found.mean_extent or 0.0) * found.measured for found in reorderings)
    mean = significant(extents / measured) if measured else UNKNOWN
    maximum = max((found.maximum_extent for found in reorderings), default=None)
    yield cell(UNKNOWN if maximum is None else f"{mean} / {whole(maximum)}")
    behind = sum(found.by_three_or_more for found in reorderings) if reorderings else None
    yield from (cell(whole(count)) for count in (behind, counts.corrupted, counts.unattributed))
    yield cell(whole(min(checked, default=None)), tone="quiet")
    pairs = sum(found.pairs for found in variations)
    mean_ns = sum(found.mean_ns * found.pairs for found in variations) / pairs if pairs else None
    maximum_ns = max((found.maximum_ns for found in variations), default=None)
    yield from (cell(microseconds(ns)) for ns in (mean_ns, maximum_ns))
    flows = [stream.flows for stream in streams if stream.flows]
    lossy = sum(one.with_loss for one in flows)
    every = f" of {whole(sum(one.flows for one in flows))}" if lossy else ""
    yield cell(f"{whole(lossy)}{every}" if flows else UNKNOWN)
    over = received_over_time([stream.intervals for stream in streams if stream.intervals])
    yield cell(UNKNOWN) if over is None else cell(over[0], BREAK, set_tone(over[1], "quiet"))
