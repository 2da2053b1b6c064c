"""What each machine did during the run, what monitoring it cost, and links that a test made fail on purpose."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import groupby

from nicbench.core.bond import LinkFailureOutcome
from nicbench.core.round import Job, Round
from nicbench.core.units import count_of, format_digits, format_duration_s
from nicbench.report.document.blocks import Block, Cell
from nicbench.report.document.making import (
    NOTHING,
    caption,
    cell,
    head,
    heading,
    heads,
    name,
    paragraph,
    set_tone,
    strong,
    table,
    words,
)
from nicbench.report.drawing.figures import Figures
from nicbench.report.drawing.over_time import failed_link_figure, moved_figure, watched_figure
from nicbench.report.numbers import UNKNOWN, seconds, significant
from nicbench.report.watched import RECORDING, USERS, CpuUsers, MovedData, SocketLinks, WatchedMachine
from nicbench.report.wording import capitalise, first_few
from nicbench.stats.links import when_words, who_words
from nicbench.stats.rounds import what_of

_MOST_IDLE = 12
_CPU_USERS = {
    "own": "The test",
    "kernel": "Kernel",
    "nicbench": "nicbench",
    "strangers": "Strangers",
    "idle": "Idle",
    "steal": "Hypervisor",
    "pressure": "Waited",
}


def watched_parts(machines: tuple[WatchedMachine, ...], figures: Figures) -> Iterator[Block]:
    """Yields the monitoring results of each machine."""
    if not machines:
        return
    several = len(machines) > 1
    yield heading(2, f"Activity of the machine{'s' if several else ''}", id="watched")
    for view in machines:
        if several:
            yield heading(3, view.host)
        yield from _machine(view, figures)


def cpu_user_parts(machines: tuple[CpuUsers, ...]) -> Iterator[Block]:
    """Yields who used the CPUs of each machine while rounds ran, and by which programs."""
    if not machines:
        return
    yield heading(2, "Who used the CPUs", id="cpu-users")
    yield table(
        ((head("Machine", words=True), *heads(*(f"{title}\n[%]" for title in _CPU_USERS.values()))),),
        ((name(one.machine, words=True), *(_share(one.shares[field]) for field in _CPU_USERS)) for one in machines),
        "result",
    )
    yield caption(
        "Shares of the time of all CPUs of the machine, means over all rounds, from before the first client began "
        "until after the last had ended. The test is its tools and servers with all that they start. The kernel is "
        "interrupts that no program was billed for, and threads of the kernel, as those of an NFS server. Others "
        "are all other programs. Waited is the share of the time in which some task was ready and had no CPU, by the "
        "kernel’s /proc/pressure."
    )
    for one in machines:
        if one.programs:
            yield _programs(one, several=len(machines) > 1)


def _programs(one: CpuUsers, *, several: bool) -> Block:
    return table(
        (
            (
                head(f"Program on {one.machine}" if several else "Program", words=True),
                head("Of", words=True),
                *heads("Mean [%]", "Greatest [%]"),
            ),
        ),
        (
            (
                name(row.name, words=True),
                words(set_tone(USERS[row.user], "warn") if row.user == "stranger" else USERS[row.user]),
                cell(strong(_fine_percent(row.mean))),
                cell(_fine_percent(row.greatest)),
            )
            for row in one.programs
        ),
        "result",
    )


def _share(share: float | None) -> Cell:
    return cell(UNKNOWN if share is None else _fine_percent(share))


def _fine_percent(share: float) -> str:
    """With one decimal; a little is not nothing."""
    return "< 0.1" if 0 < share < 0.0005 else f"{100 * share:.1f}"


def _machine(view: WatchedMachine, figures: Figures) -> Iterator[Block]:
    is_recording = view.what == RECORDING
    if figure := watched_figure(view, figures):
        yield figure
    if view.phases:
        yield _phases(view)
        yield caption(_shares_words(view, is_recording=is_recording))
    if view.links:
        yield from _socket_links(view.links)
    for moved in view.moved:
        yield from _moved_data(moved, view.host, figures)
    yield caption(_recording_words(view) if is_recording else _sampling_words(view))
    missing = view.plan.missing if view.plan else {}
    if missing:
        yield caption(f"This machine does not report {', '.join(missing).replace('_', ' ')}.")


def _phases(view: WatchedMachine) -> Block:
    rows = (
        (
            name(f"{phase.name} ({seconds(phase.duration_s)} s)" if number == 0 else "", words=True),
            words(one.name),
            cell(strong(_percent(one.busy.mean))),
            cell(_percent(one.busy.maximum)),
            cell(UNKNOWN if one.softirq is None else _percent(one.softirq.mean)),
            cell(UNKNOWN if one.steal is None else _percent(one.steal.maximum)),
        )
        for phase in view.phases
        for number, one in enumerate(phase.rows)
    )
    return table(
        (
            (NOTHING, NOTHING, head("Busy [%]", columns=2), *heads("Softirq [%]", "Stolen [%]")),
            (head("During", words=True), head("CPU", words=True), *heads("mean", "max", "mean", "max")),
        ),
        rows,
        "result",
    )


def _socket_links(rows: tuple[SocketLinks, ...]) -> Iterator[Block]:
    """Yields a table of what each socket sent to the others, and how far that used the links between them."""
    groups = ("Sent to other sockets [GB/s]", "Links used [%]")
    yield table(
        (
            (NOTHING, NOTHING, *(head(group, columns=2) for group in groups)),
            (head("During", words=True), head("Socket", words=True), *heads(*("mean", "max") * 2)),
        ),
        (
            (
                name(phase if number == 0 else "", words=True),
                words(row.socket.removeprefix("socket")),
                cell(strong(significant(row.sent_bytes_per_s.mean / 1e9))),
                cell(significant(row.sent_bytes_per_s.greatest / 1e9)),
                cell(strong(_percent(row.used.mean)) if row.used else UNKNOWN),
                cell(_percent(row.used.greatest) if row.used else UNKNOWN),
            )
            for phase, of_phase in groupby(rows, key=lambda row: row.phase)
            for number, row in enumerate(of_phase)
        ),
        "result",
    )
    told = "Sent is data, by counters of the whole socket; the greatest value is of one sample. "
    if any(row.used for row in rows):
        told += "Used is the share of the flits that the links could carry: data, requests, answers and credits."
    else:
        told += "How far that used the links this processor does not tell."
    yield caption(told)


def _percent(share: float) -> str:
    return str(round(100 * share, 1))


def _shares_words(view: WatchedMachine, *, is_recording: bool) -> str:
    if is_recording:
        recorder = view.plan.recorder if view.plan else None
        return (
            f"Shares of each CPU’s time, as {recorder} told them; what it does not tell is “–”. Means are over the "
            "whole recording, maxima of single snapshots. Busy is programs and kernel, with interrupts."
        )
    paused = ", in trials of whole trials" if view.plan and view.plan.paused else ""
    return f"Shares of each CPU’s time; maxima are of single samples of 100 ms or more{paused}."


def _recording_words(view: WatchedMachine) -> str:
    plan = view.plan
    how = f"Recorded every {format_duration_s(plan.interval_s)} by {plan.recorder}, " if plan else ""
    return (
        f"{how}{view.samples or 'no'} snapshots of CPUs, by the machine’s own clock, which tells whole seconds. Not "
        "recorded by nicbench, which knows neither what it cost nor how exact it is. Every value, packets and memory "
        "included, is in monitor.parquet."
    )


def _sampling_words(view: WatchedMachine) -> str:
    plan, cost = view.plan, view.cost
    how = (
        f"Sampled every {format_duration_s(plan.interval_s)} by nicbench-monitor {plan.version or ''}, during "
        f"{view.what} {plan.during_trials}. "
        if plan
        else ""
    )
    took = (
        f"It took {significant(100 * cost.share_of_a_core)} % of one core ({cost.samples} samples over "
        f"{seconds(cost.elapsed_ns / 1e9)} s). "
        if cost and cost.share_of_a_core is not None
        else "What it cost is not known: it did not end by itself. "
    )
    return f"{how}{took}All that was sampled is in monitor.parquet."


def _moved_data(moved: MovedData, host: str, figures: Figures) -> Iterator[Block]:
    """Yields a figure and a table of the data that interfaces or drives moved over time."""
    if figure := moved_figure(moved, host, figures):
        yield figure
        yield table(
            ((head(moved.kind.name, words=True), *heads("Mean [MB/s]", "Greatest [MB/s]", "In all [MB]")),),
            (
                (
                    name(flow.name, words=True),
                    cell(strong(significant(flow.mean_bytes_per_s / 1e6))),
                    cell(significant(flow.greatest_bytes_per_s / 1e6)),
                    cell(significant(flow.moved_bytes / 1e6)),
                )
                for flow in moved.flows
            ),
            "result",
        )
    told = ""
    if moved.others:
        more, verb = count_of(moved.others, f"more {moved.kind.of}"), "is" if moved.others == 1 else "are"
        told = f"{more} moved less, and {verb} in monitor.parquet. "
    if moved.idle:
        told += f"Nothing went through {first_few(moved.idle, _MOST_IDLE)}."
    if told:
        yield caption(told)


def failed_link_parts(failed: tuple[Round, ...], figures: Figures) -> Iterator[Block]:
    """Yields the links that failed on purpose, and what each connection did meanwhile."""
    if not failed:
        return
    yield heading(2, "Links that failed on purpose")
    yield caption(
        "A connection’s silence is the longest time without a byte of it, by the counters of its sockets: from when "
        "the link went down until it was back, and from then on. The port that it left by while the link was down is "
        "the bond’s choice, computed as its driver does."
    )
    for one in failed:
        assert one.failure is not None  # noqa: S101 - of the rounds with one
        yield heading(3, f"{one.id}: {what_of(one)}")
        yield paragraph(f"{capitalise(when_words(one.failure))}.")
        if figure := failed_link_figure(one, figures):
            yield figure
        if one.failure.flows:
            yield _connections(one.failure, one.request.jobs)
            if one.failure.step_s:
                apart = significant(one.failure.step_s)
                yield caption(f"Connections were looked at {apart} s apart at most: no silence is known finer.")


def _connections(failed: LinkFailureOutcome, jobs: tuple[Job, ...]) -> Block:
    """Returns a row for each connection, or for several of one client that behaved alike; the ports are those of the
    host that has the bond.
    """

    def silence(seconds: float | None) -> str:
        """Returns a silence in seconds, no finer than the connections were observed."""
        if seconds is None:
            return UNKNOWN
        if failed.step_s is not None and seconds <= failed.step_s:
            return f"≤ {format_digits(failed.step_s, 2)}"
        return format_digits(seconds, 2)

    rows: Counter[tuple[str, str, str, str, str, str]] = Counter()
    for flow in failed.flows:
        silences = (flow.silent_down_s, flow.silent_back_s) if flow.went_on is not False else (None, None)
        went_on = UNKNOWN if flow.went_on is None else "yes" if flow.went_on else "no"
        down, back = map(silence, silences)
        ports = flow.port_before or UNKNOWN, flow.port_down or UNKNOWN
        rows[who_words(flow, jobs), *ports, down, back, went_on] += 1
    titles = heads(
        "Client",
        "Connections",
        "Port\nbefore",
        "Port while\nit was down",
        "Silent when it\nwent down [s]",
        "Silent when it\nwas back [s]",
        "Went on",
    )
    body = (
        (name(who), *map(cell, (str(count), before, during)), cell(strong(down)), cell(back), cell(went_on))
        for (who, before, during, down, back, went_on), count in sorted(rows.items(), key=lambda item: item[0][:2])
    )
    return table((titles,), body, "result")
