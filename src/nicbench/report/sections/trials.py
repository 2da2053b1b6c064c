"""The appendix of a run of frames: every trial, where frames were lost, what the receiver saw, hardware health."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nicbench.core.reading import Capture, Counts
from nicbench.core.trial import Trial
from nicbench.report.document.blocks import Block, Cell, FoldedBlocks, Group, Note
from nicbench.report.document.inlines import BREAK, Part, file_link, inlines, set_tone, strong
from nicbench.report.document.tables import (
    NOTHING,
    caption,
    cell,
    head,
    heading,
    heads,
    listing,
    name,
    paragraph,
    row,
    table,
    word_heads,
    words,
)
from nicbench.report.facts import label_of
from nicbench.report.model import TrialGroup
from nicbench.report.numbers import UNKNOWN, microseconds, milliseconds, mpps, percent, significant, whole
from nicbench.report.trial_tables import DetailRow, DetailTable, LedgerRow, LedgerTable, MachineTable, sparkline

PRINTED_TRIALS = 400
"""A table with more trials would fill over a dozen sheets and is printed only if the reader has unfolded it."""
_MOST_FAULTS = 8
_MOST_COUNTERS = 6
_MOST_BESIDE = 12


def every_trial(groups: Sequence[TrialGroup], *, has_unknown_counts: bool) -> Iterator[Block]:
    """Yields every trial of every test, folded."""
    if not groups:
        return
    unknown = " Where a count is an en dash it is not measured by this tester." if has_unknown_counts else ""
    told = caption(
        "Load is per port; of many ports that send to one, their sum. “Full” means as fast as the ports take frames. "
        "Unsent is the tester’s own shortfall, with back-pressure of a lossless port after the plus sign. The ceiling "
        "of the tester is measured into a sink: there no frame is meant to come back. A gap is time in which the "
        f"tester’s loop was held up.{unknown}"
    )
    yield Group((heading(2, "Every trial"), told, *map(_trials, groups)), "trials")


def _trials(group: TrialGroup) -> Block:
    invalid = f", {group.invalid_count} invalid" if group.invalid_count else ""
    columns = (
        head("Trial"),
        head("At", "s"),
        Cell(inlines("Purpose"), is_head=True, words=True, look="short"),
        head("Frame", "bytes"),
        head("Load", "Mpps"),
        head("Time", "s"),
        *heads("Intended", "Sent", "Unsent", "Received", "Lost"),
        head("Loss", "%"),
        *heads("Late", "Dupli-\ncated", "Re-\nordered", "Cor-\nrupted", "Foreign", "Longest\ngap [ms]"),
        head("All gaps", "ms"),
        head("Core clock", "GHz"),
        *word_heads("Verdict"),
    )
    body = (row(*_trial(trial), look="" if trial.verdict.valid else "invalid") for trial in group.trials)
    return FoldedBlocks(
        inlines(f"{group.test}: {len(group.trials)} trials{invalid}"),
        (table((columns,), body),),
        is_for_screens=len(group.trials) > PRINTED_TRIALS,
        is_detail=True,
    )


def _trial(trial: Trial) -> Iterator[Cell]:
    counts, health = trial.reading.counts, trial.reading.health
    repeat = f" (repeat {trial.repeat})" if trial.repeat else ""
    yield name(trial.id)
    yield cell(UNKNOWN if trial.at_s is None else f"{trial.at_s:.1f}")
    yield Cell(inlines(f"{label_of(trial.request.purpose.value)}{repeat}"), words=True, look="short")
    yield cell(_size(trial))
    yield cell(_load(trial, 4))
    yield cell(f"{trial.request.duration_s:g}")
    yield cell(whole(counts.intended))
    yield cell(whole(counts.sent))
    yield cell(_unsent(counts))
    is_counted = trial.reading.is_counted
    yield cell(whole(counts.received) if is_counted else UNKNOWN)
    yield cell(whole(counts.lost) if is_counted else UNKNOWN)
    yield cell(percent(100 * counts.loss_ratio) if is_counted else UNKNOWN)
    yield cell(whole(counts.late))
    yield cell(whole(counts.duplicated))
    yield cell(whole(counts.reordered))
    unknown = f" + {whole(counts.corrupted_unattributed)} of no known flow" if counts.corrupted_unattributed else ""
    copies = f" + {whole(counts.corrupted_copies)} copies" if counts.corrupted_copies else ""
    yield cell(f"{whole(counts.corrupted)}{unknown}{copies}")
    misdirected = f" + {whole(counts.misdirected)} misdirected" if counts.misdirected else ""
    stale = f" + {whole(counts.stale)} of earlier trials" if counts.stale else ""
    yield cell(f"{whole(counts.foreign)}{misdirected}{stale}")
    yield cell(milliseconds(health.longest_gap_ns))
    yield cell(milliseconds(health.total_gap_ns))
    clocks = health.core_clock_hz
    yield cell(f"{clocks[0] / 1e9:.2f}, {clocks[1] / 1e9:.2f}" if clocks else UNKNOWN)
    told = "; ".join(f"{label_of(each.reason.value)}: {each.text}" for each in trial.verdict.findings)
    said = f"adjusted for: {told}" if trial.verdict.adjusted else "valid" if trial.verdict.valid else told
    yield words(said)


def _size(trial: Trial) -> str:
    return trial.request.mix.name if trial.request.mix else str(trial.request.frame_bytes)


def _load(trial: Trial, decimals: int) -> str:
    load = trial.request.load_frames_per_s
    return "full" if load is None else mpps(load, decimals)


def _unsent(counts: Counts) -> str:
    backpressure = f" + {whole(counts.unsent_backpressure)}" if counts.unsent_backpressure else ""
    return f"{whole(counts.unsent_tester)}{backpressure}"


def ledger(shown: LedgerTable | None) -> Iterator[Block]:
    """Yields the loss ledger: a row for each trial, a column for each place of loss, in the order of the path."""
    if shown is None:
        return
    summary = ""
    if not shown.faults:
        lost = whole(shown.lost)
        summary = (
            f" Of {lost} lost frames {whole(shown.unexplained)} are unexplained."
            if shown.unexplained
            else f" Every one of the {lost} lost frames is accounted for."
        )
    told = caption(
        "Counters on every host of the path were read before and after each trial that measured the DUT. Listed are "
        "the trials that lost frames, and the places where some were lost, from sender to receiver; a place without a "
        "column lost none. A frame that several counters saw is counted once. Unexplained is what no counter accounts "
        f"for.{summary}"
    )
    whole_ledger = FoldedBlocks(
        inlines(f"Loss ledger: {len(shown.rows)} trial{'' if len(shown.rows) == 1 else 's'}"),
        (_ledger_table(shown), *_ledger_notes(shown)),
        is_for_screens=len(shown.rows) > PRINTED_TRIALS,
        is_detail=True,
    )
    yield Group(
        (heading(2, "Where frames were lost", id="ledger"), told, *_ledger_faults(shown), whole_ledger), "trials"
    )


def _ledger_faults(shown: LedgerTable) -> Iterator[Block]:
    if shown.faults:
        trials = len({trial for trial, _ in shown.faults})
        several = "s" if trials > 1 else ""
        first = paragraph(
            strong(f"The ledger is not reliable in {trials} trial{several}:"),
            " counters contradict each other or could not be read. The counts of the trials stand.",
        )
        told = [paragraph(f"{trial}: {fault}.") for trial, fault in shown.faults[:_MOST_FAULTS]]
        more = len(shown.faults) - _MOST_FAULTS
        yield Note((first, *told, *([paragraph(f"And {more} more.")] if more > 0 else [])))


def _ledger_table(shown: LedgerTable) -> Block:
    span = "lost at, from sender to receiver →"
    over = (*[NOTHING] * 5, *((head(span, columns=len(shown.places)),) if shown.places else ()), NOTHING)
    places = (Cell(inlines(place.name), is_head=True, title=", ".join(place.counters)) for place in shown.places)
    columns = (
        head("Trial"),
        head("Frame", "bytes"),
        head("Load", "Mpps"),
        *heads("Unsent", "Lost"),
        *places,
        head("Unexplained"),
    )
    return table((over, columns), map(_ledger_row, shown.rows), "ledger")


def _ledger_row(one: LedgerRow) -> tuple[Cell, ...]:
    reading = one.trial.reading
    return (
        name(one.trial.id),
        cell(_size(one.trial)),
        cell(_load(one.trial, 3)),
        cell(_unsent(reading.counts), tone="quiet"),
        cell(whole(reading.counts.lost)),
        *(cell(set_tone("·", "quiet") if frames is None else whole(frames)) for frames in one.cells),
        cell(whole(reading.unexplained), tone="warn" if reading.unexplained else ""),
    )


def _ledger_notes(shown: LedgerTable) -> Iterator[Block]:
    places = "".join(
        f"{place.name}: {', '.join(place.counters[:_MOST_COUNTERS])}{_more(place.counters, _MOST_COUNTERS)}. "
        for place in shown.places
    )
    yield caption(f"{places}Unsent frames never left the tester and are not among the lost.")
    if shown.beside:
        told = "; ".join(
            f"{trial}, {loss.place}: {whole(loss.frames)} by {loss.counter} ({loss.why})"
            for trial, loss in shown.beside[:_MOST_BESIDE]
        )
        more = len(shown.beside) - _MOST_BESIDE
        rest = f"; and {more} more" if more > 0 else ""
        yield caption(f"Counters that also rose, and explain no loss by themselves: {told}{rest}.")


def _more(items: Sequence[object], most: int) -> str:
    return f" and {len(items) - most} more" if len(items) > most else ""


def hardware(shown: MachineTable | None) -> Iterator[Block]:
    """Yields what the hardware of the hosts reported about itself."""
    if shown is not None:
        yield Group(tuple(_hardware(shown)))


def _hardware(shown: MachineTable) -> Iterator[Block]:
    took = (
        ""
        if shown.reading_ms is None
        else f" Both readings took {shown.reading_ms:.0f} ms a trial, off the transmission."
    )
    calm = "" if shown.events else f" No counter rose in {whole(shown.trials)} trials."
    yield heading(2, "Health of the hardware")
    yield caption(
        "Before and after each trial the hosts were asked for errors of their PCIe and network links, corrected and "
        f"not, for changes of links, throttling, temperatures and power, as far as they tell.{took}{calm}"
    )
    if shown.events:
        yield table(
            ((head("What rose", words=True), *heads("By", "In trials"), head("Verdict", words=True)),),
            (
                (
                    name(f"{one.event.host}, {one.event.where}: {one.event.what}", words=True),
                    cell(
                        f"{100 * one.amount:.1f} %"
                        if one.event.unit == "share"
                        else f"{whole(one.amount)} {one.event.unit}"
                    ),
                    cell(f"{len(one.trials)} ({', '.join(one.trials[:3])}{', ...' if len(one.trials) > 3 else ''})"),
                    words(
                        set_tone(f"made {one.invalid_count} invalid", "warn")
                        if one.invalid_count
                        else "of interest: corrected blocks lose nothing"
                        if one.is_harmless
                        else "a warning: below its threshold"
                    ),
                )
                for one in shown.events
            ),
        )
    if shown.levels:
        yield table(
            ((head("Part", words=True), *heads("Least", "Greatest", "Its own limit")),),
            (
                (
                    name(f"{one.level.host}, {one.level.where}", words=True),
                    cell(f"{one.least:.1f} {(unit := '°C' if one.level.unit == 'C' else one.level.unit)}"),
                    cell(f"{one.greatest:.1f} {unit}"),
                    cell(UNKNOWN if one.level.limit is None else f"{one.level.limit:.0f} {unit}"),
                )
                for one in shown.levels
            ),
        )
    else:
        yield caption("No host reports temperature or power.")
    if shown.unread:
        yield caption(f"Not available: {'; '.join(shown.unread)}.")


def frame_by_frame(tables: Sequence[DetailTable], captures: Sequence[Capture]) -> Iterator[Block]:
    """Yields what the receiver saw in single trials, frame by frame, folded."""
    if not tables and not captures:
        return
    told = caption(
        "Every frame of every flow is judged. For each point, the trial at the highest load without a failed frame, or "
        "else the one that failed least. Extent: how many frames came since the first that overtook (RFC 4737, 4.2). "
        "PDV: 99.9th percentile less minimum (RFC 8219, 7.3.1). IPDV: difference, without its sign, between the "
        "latencies of frames of a flow that follow one another (RFC 5481, 4.1). Checked: bytes of each frame that are "
        "compared with what was sent, signature and payload; a broken one is corrupted, one with a broken signature "
        "unattributed."
    )
    files = (
        (FoldedBlocks(inlines(f"Captured frames: {len(captures)} files"), (listing(map(_capture, captures)),)),)
        if captures
        else ()
    )
    yield Group((heading(2, "Frame by frame"), told, *map(_detail, tables), *files), "trials")


def _capture(capture: Capture) -> Part:
    if capture.error:
        return f"{capture.name}: {capture.error}"
    jumps = f", around {whole(capture.jumps)} losses" if capture.jumps else ""
    truncated = "; more were left out" if capture.truncated else ""
    return inlines(file_link(capture.name), f": {whole(capture.frames)} frames{jumps}{truncated}")


def _detail(shown: DetailTable) -> Block:
    columns = (
        head("Frame", "bytes"),
        head("Load", "Mpps"),
        *heads("Lost", "Dupli-\ncated", "Re-\nordered", "Extent,\nmean / max", "Behind\n≥ 3", "Cor-\nrupted"),
        head("Unattri-\nbuted"),
        head("Checked", "bytes"),
        head("PDV", "µs"),
        head("IPDV mean", "µs"),
        head("IPDV max", "µs"),
        head("Flows\nwith loss"),
        head("Received over time", "Mpps"),
        head("Trial"),
    )
    notes = (
        caption(
            f"{one.size}, {one.trial.id}: frames right behind n or more with greater sequences (n-reordering, "
            f"RFC 4737, 5.3), for n = 1 to {len(one.n_reordered)}: {', '.join(map(whole, one.n_reordered))}."
        )
        for one in shown.rows
        if one.n_reordered
    )
    trials = "trial" if len(shown.rows) == 1 else "trials"
    summary = f"{shown.test}: {len(shown.rows)} {trials}"
    return FoldedBlocks(inlines(summary), (table((columns,), map(_detail_row, shown.rows)), *notes), is_detail=True)


def _detail_row(one: DetailRow) -> Iterator[Cell]:
    counts = one.trial.reading.counts
    yield name(one.size)
    yield cell(_load(one.trial, 3))
    yield from (cell(whole(count)) for count in (counts.lost, counts.duplicated, counts.reordered))
    mean = UNKNOWN if one.mean_extent is None else significant(one.mean_extent)
    yield cell(UNKNOWN if one.maximum_extent is None else f"{mean} / {whole(one.maximum_extent)}")
    yield from (cell(whole(count)) for count in (one.by_three_or_more, counts.corrupted, counts.unattributed))
    yield cell(f"{whole(one.checked_bytes)} of {one.size}", tone="quiet")
    yield from (cell(microseconds(ns)) for ns in (one.pdv_ns, one.ipdv_mean_ns, one.ipdv_maximum_ns))
    flows = one.flows
    yield cell(f"{whole(flows.with_loss)} of {whole(flows.flows)}" if flows else UNKNOWN)
    over = one.over_time
    if over is None:
        yield cell(UNKNOWN)
    else:
        between = f"{mpps(over.lowest_frames_per_s, 3)} to {mpps(over.highest_frames_per_s, 3)}"
        yield cell(sparkline(over), BREAK, set_tone(between, "quiet"))
    yield cell(one.trial.id, tone="quiet")
