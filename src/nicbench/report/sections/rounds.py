"""Every round of a run, for the appendix: what each tool was asked, what it reported, and what the interfaces counted.
A process of film frames has its own words for what it was asked and what it reported.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from nicbench.core.bond import HASHED_MODES, BondFlow, BondObservation, BondPort
from nicbench.core.connections import ConnectionFigures, ConnectionsSpec
from nicbench.core.lists import grouped
from nicbench.core.round import Figures, Flow, FrameFigures, FramesSpec, Job, JobOutcome, JobSpec, MachineCpu, Round
from nicbench.core.units import format_bits_per_s, format_digits, format_duration_s
from nicbench.report.document.blocks import Block, Cell, FoldedBlocks, Group, Listing, Row
from nicbench.report.document.making import (
    NOTHING,
    breakable,
    caption,
    cell,
    code,
    head,
    heading,
    heads,
    inlines,
    join_inlines,
    lines,
    name,
    paragraph,
    row,
    set_tone,
    superscript,
    table,
    word_heads,
    words,
)
from nicbench.report.numbers import UNKNOWN, megabytes, microseconds, milliseconds, significant, whole
from nicbench.stats.latency import percentiles_ns
from nicbench.stats.links import failure_note
from nicbench.stats.rounds import pairs_of, what_of

_TASKS = {"read": "frames read", "write": "frames written", "prepare": "frames written, to be read later"}


def asked_of_frames(ask: FramesSpec) -> Iterator[str]:
    """Yields everything that decides what is measured, including the engine's defaults."""
    yield _TASKS[ask.task]
    if ask.frame_bytes is not None:
        yield f"{whole(ask.frame_bytes)} bytes each"
    elif ask.profile is not None:
        yield f"of profile {ask.profile}"
    if ask.header_bytes is not None:
        yield f"with headers of {whole(ask.header_bytes)} bytes"
    if ask.frames is not None:
        yield f"{whole(ask.frames)} of them"
    yield "as fast as it goes" if ask.frames_per_s is None else f"{ask.frames_per_s:g} frames/s"
    if ask.after_s:
        yield f"beginning {format_duration_s(ask.after_s)} after the first"
    if ask.warm_up_s:
        yield f"after {format_duration_s(ask.warm_up_s)} of warm-up"
    if ask.order != "forward":
        yield f"order {ask.order}"
    yield f"engine {ask.engine}"
    if ask.threads > 1:
        yield f"{ask.threads} threads"
    yield f"depth {ask.depth}"
    yield f"{whole(ask.request_bytes)} bytes a request" if ask.request_bytes else "a frame a request"
    if ask.read_ahead_frames > 1 and ask.task == "read":
        yield f"{ask.read_ahead_frames} frames read ahead"
    yield "direct" if ask.direct else "through the page cache"
    if ask.sync != "none":
        yield f"synchronised at each {ask.sync}" if ask.sync == "frame" else "synchronised at the end"
    if ask.verify != "blocks" and ask.task == "read":
        yield {"none": "not verified", "full": "every byte verified"}[ask.verify]


def said_of_frames(figures: FrameFigures) -> Iterator[str]:
    """Yields the rates, what was dropped, how long a frame took, and the engine that was used in the end."""
    yield (
        f"{format_digits(figures.frames_per_s, 6)} frames/s, {megabytes(figures.bytes_per_s)} MB/s, "
        f"{whole(figures.frames)} frames{_frame_size_words(figures)}"
    )
    if figures.due_frames is not None:
        yield f"{whole(figures.dropped_frames)} dropped of {whole(figures.due_frames)} frames due"
    times = figures.completion
    if times is not None:
        median = percentiles_ns(times.histogram, maximum_ns=times.maximum_ns).get("50")
        known = [] if median is None else [f"median {milliseconds(median)} ms"]
        yield f"completion: {', '.join([*known, f'greatest {milliseconds(times.maximum_ns)} ms'])}"
    yield f"engine {figures.engine}"


def _frame_size_words(figures: FrameFigures) -> str:
    """Returns the size of a frame; for frames of several sizes, the size of all together."""
    if not figures.frames:
        return ""
    size, rest = divmod(figures.bytes, figures.frames)
    return f" of {whole(figures.bytes)} bytes in all" if rest else f" of {whole(size)} bytes each"


_ASKED_OF_CONNECTIONS: Final = {
    "connect": "{rate} new connections/s",
    "requests": "{rate} requests/s on {connections} connections",
    "hold": "{connections} connections to hold, {rate} opened in a second",
}


def asked_of_connections(ask: ConnectionsSpec) -> Iterator[str]:
    """Yields what is due, and who makes it."""
    rate, connections = significant(ask.rate_per_s), whole(ask.connections)
    yield _ASKED_OF_CONNECTIONS[ask.task].format(rate=rate, connections=connections)
    yield "TCP" if ask.tls is None else f"TLS {ask.tls}"
    yield "by the kernel's sockets" if ask.driver == "kernel" else "in the driver's hook"


def said_of_connections(figures: ConnectionFigures) -> Iterator[str]:
    """Yields what became of what was due, and the segments of each side, as far as they are counted."""
    for phase, counts in (("ramp", figures.ramp), ("sustain phase", figures.sustain)):
        if counts.due:
            failed = "".join(f", {whole(count)} {kind.replace('_', ' ')}" for kind, count in counts.failed.items())
            yield f"{phase}: {whole(counts.completed)} of {whole(counts.due)} complete{failed}"
    for side, segments in (("client", figures.segments), ("server", figures.server_segments)):
        if segments is not None:
            others = (
                ("damaged", segments.damaged),
                ("repeated", segments.repeated),
                ("strange", segments.not_expected),
            )
            more = "".join(f", {whole(count)} {kind}" for kind, count in others if count)
            yield f"{side}: {whole(segments.sent)} segments sent, {whole(segments.resent)} again{more}"


_WAYS = {"forward": "to", "reverse": "from"}
_DIRECTIONS = {"forward": "client sends", "reverse": "server sends", "both": "both ways"}


class Tool(NamedTuple):
    """How a tool was used in a run, for the disclosure."""

    name: str
    versions: tuple[str, ...]
    example: str
    """The command line of its first client."""


class Variable(NamedTuple):
    """A value of an environment variable of the tools; ``where`` has tools and hosts, "" where all have it."""

    name: str
    value: str
    where: str


def tools_of(rounds: Iterable[Round]) -> tuple[Tool, ...]:
    """Returns every tool that was used, with every version of it on any host."""
    versions: dict[str, dict[str, None]] = {}
    examples: dict[str, str] = {}
    for one in rounds:
        for job, outcome in pairs_of(one):
            known = versions.setdefault(job.workload, {})
            known.update(dict.fromkeys(each for each in (outcome.version, outcome.server_version) if each))
            if outcome.client_command:
                examples.setdefault(job.workload, shlex.join(outcome.client_command))
    return tuple(Tool(name, tuple(known), examples.get(name, "")) for name, known in versions.items())


def variables_of(rounds: Iterable[Round]) -> tuple[Variable, ...]:
    """Returns every value of every environment variable that a tool ran with, by name."""
    places: dict[tuple[str, str], dict[str, None]] = {}
    everywhere = {}
    for one in rounds:
        for each in one.environments:
            here = dict.fromkeys(f"{each.workload} on {host}" for host in each.hosts)
            everywhere.update(here)
            for variable in each.variables.items():
                places.setdefault(variable, {}).update(here)
    return tuple(
        Variable(name, value, "" if len(where) == len(everywhere) else ", ".join(where))
        for (name, value), where in sorted(places.items())
    )


def failures_of(rounds: Iterable[Round]) -> tuple[str, ...]:
    """Returns what went wrong with tools, each cause once with the number of times, for the first page."""
    found = grouped(
        (outcome.failure, f"{_ends(job)} in {one.id}")
        for one in rounds
        for job, outcome in pairs_of(one)
        if outcome.failure is not None
    )
    return tuple(
        f"{text} ({places[0] if len(places) == 1 else f'{len(places)} times, first {places[0]}'})"
        for text, places in found.items()
    )


def _ends(job: Job) -> str:
    ends = job.client if job.server is None else f"{job.client} and {job.server}"
    return ends if job.label is None else f"{job.label} on {ends}"


def asked_words(ask: JobSpec) -> str:
    """Returns what a tool was asked to do, in words; options that were left at their defaults are omitted."""
    apart = asked_of_frames(ask.frames) if ask.frames else ask.connections and asked_of_connections(ask.connections)
    if apart is not None:
        long = () if ask.duration_s is None else (f"{format_duration_s(ask.duration_s)} long",)
        return ", ".join((*apart, *long))
    transport = "RDMA" if ask.transport == "rdma" else ask.transport.upper()
    said = [f"{transport} {ask.operation.replace('stream', 'streams')}" if ask.operation != "memory" else "memory"]
    if ask.operation == "stream":
        said.append(_DIRECTIONS[ask.direction])
    for text, value in (
        ("{} long", None if ask.duration_s is None else format_duration_s(ask.duration_s)),
        ("{} bytes in all", None if ask.total_bytes is None else whole(ask.total_bytes)),
        ("{} bytes each", None if ask.write_bytes is None else whole(ask.write_bytes)),
        ("{} at once", ask.streams if ask.streams > 1 else None),
        ("window {} bytes", None if ask.window_bytes is None else whole(ask.window_bytes)),
        ("{}", ask.congestion_control),
        ("{} each", None if ask.rate_bits_per_s is None else format_bits_per_s(ask.rate_bits_per_s)),
        ("verb {}", ask.verb),
        ("from file {}", ask.source_file),
        ("into file {}", ask.sink_file),
        ("{}", "zero copy" if ask.zero_copy else None),
        ("{}", "no delay" if ask.no_delay else None),
    ):
        if value is not None:
            said.append(text.format(value))
    return ", ".join(said)


def _figures(figures: Figures) -> Iterator[str]:
    for flow in figures.flows:
        yield _flow(flow)
    if figures.frames is not None:
        yield from said_of_frames(figures.frames)
    if figures.connections is not None:
        yield from said_of_connections(figures.connections)
    if figures.transactions_per_s is not None:
        yield f"{significant(figures.transactions_per_s)} transactions/s"
    if figures.latency is not None:
        known = figures.latency
        values = (("median", known.percentiles_ns.get("50")), ("mean", known.mean_ns), ("most", known.maximum_ns))
        said = ", ".join(f"{name} {microseconds(value)} µs" for name, value in values if value is not None)
        yield f"latency, {known.basis}: {said}"
    if figures.memory_bytes_per_s is not None:
        yield f"memory {format_digits(figures.memory_bytes_per_s / 1e9)} GB/s"
    if figures.client_cpu_share is not None:
        yield f"its client took {format_digits(100 * figures.client_cpu_share)} % of a CPU"
    if figures.server_cpu_share is not None:
        yield f"its server took {format_digits(100 * figures.server_cpu_share)} % of a CPU"
    for side, share in (("client", figures.client_machine_cpu_share), ("server", figures.server_machine_cpu_share)):
        if share is not None and not figures.notes:
            yield f"it saw the {side}'s machine {format_digits(100 * share)} % busy"
    yield from figures.notes


def _flow(flow: Flow) -> str:
    rate = "unknown" if flow.bits_per_s is None else format_bits_per_s(flow.bits_per_s)
    said = [f"{_WAYS[flow.direction]} the server {rate}"]
    if flow.received_bytes is not None:
        said.append(f"{whole(flow.received_bytes)} bytes received")
    if flow.retransmissions is not None:
        said.append(f"{flow.retransmissions} retransmissions")
    if flow.datagrams is not None and flow.lost_datagrams is not None:
        said.append(f"{whole(flow.lost_datagrams)} of {whole(flow.datagrams)} datagrams lost")
    return ", ".join(said)


def _cpu(cpu: MachineCpu) -> str:
    parts = (
        ("busy", cpu.mean),
        ("its busiest CPU", cpu.busiest_core),
        ("the test's programs", cpu.own),
        ("the kernel's work", cpu.kernel),
        ("strangers", cpu.strangers),
        ("taken by the hypervisor", cpu.steal),
        ("tasks waited", cpu.pressure),
        ("the monitor", cpu.monitor),
        ("nicbench's other processes", cpu.controller),
    )
    said = ", ".join(f"{name} {format_digits(100 * share)} %" for name, share in parts if share is not None)
    programs = ", ".join(f"{row.name} {format_digits(100 * row.share)} %" for row in cpu.processes)
    return f"{cpu.machine}: {said or 'not watched'}{f'; greatest: {programs}' if programs else ''}"


def _counted_rows(one: Round) -> Iterator[Row]:
    """Yields a row for each endpoint: the bytes that the tools reported in each direction, those that the interface
    counted (frames are longer than their payload), and every other counter that rose. What tools sent leaves an
    endpoint, and what they received enters it.
    """
    sent: dict[str, int] = {}
    received: dict[str, int] = {}
    for job, outcome in pairs_of(one):
        for flow in outcome.figures.flows if outcome.figures else ():
            source, sink = (job.client, job.server) if flow.direction == "forward" else (job.server, job.client)
            for endpoint, total, count in ((source, sent, flow.sent_bytes), (sink, received, flow.received_bytes)):
                if endpoint is not None and count is not None:
                    total[endpoint] = total.get(endpoint, 0) + count
    for endpoint, counters in one.counters.items():
        if counters and (endpoint in sent or endpoint in received):
            others = (f"{key} {whole(value)}" for key, value in counters.items() if value and key not in _USUAL)
            yield row(
                name(endpoint),
                cell(_bytes(sent, endpoint)),
                cell(_bytes(counters, "tx_bytes")),
                cell(_bytes(received, endpoint)),
                cell(_bytes(counters, "rx_bytes")),
                words(", ".join(others) or "none"),
            )


_USUAL = frozenset({"tx_bytes", "rx_bytes", "tx_packets", "rx_packets"})


def _bytes(counts: Mapping[str, int], name: str) -> str:
    return whole(counts[name]) if name in counts else UNKNOWN


def rounds(groups: Mapping[str, Sequence[Round]]) -> Iterator[Block]:
    """Yields every round of every test, folded."""
    if not groups:
        return
    told = caption(
        "A round is tools that run at the same time. Of each: what it was asked, what it said (payload, what the "
        "receiver counted; MB/s are 10",
        superscript("6"),
        " bytes), when its client began after the first of the round, and where its output is in the run folder. "
        "Interfaces count whole frames, headers and acknowledgements included, from before the first tool was started "
        "until after the last had ended.",
    )
    yield Group((heading(2, "Rounds", id="rounds"), told, *(_group(*each) for each in groups.items())), "trials")


def _group(test: str, rounds: Sequence[Round]) -> Block:
    """Returns the rounds of a test: one table of those that need no comment, and one for each of the others."""
    bad = sum(not one.verdict.valid for one in rounds)
    invalid = (", ", set_tone(f"{bad} in which something was wrong", "warn")) if bad else ()
    summary = inlines(f"{test}: {len(rounds)} rounds", *invalid)
    plain: list[Round] = []
    apart: list[Round] = []
    for one in rounds:
        is_plain = one.verdict.valid and not (one.verdict.findings or one.bonds or failure_note(one))
        (plain if is_plain else apart).append(one)
    return FoldedBlocks(summary, (*_together(plain), *map(_round, apart)), is_detail=True)


def _together(rounds: Sequence[Round]) -> Iterator[Block]:
    """Yields a table of all tools of these rounds and one of what interfaces counted, each round below its name."""
    if not rounds:
        return
    yield _tools(rounds, several=True)
    yield from _counted(rounds, several=True)
    spent = tuple(caption(f"{one.id}: CPUs of {_cpu(cpu)}.") for one in rounds for cpu in one.cpu)
    if spent:
        yield FoldedBlocks(inlines("CPUs of each round"), spent, "remarks")
    files = tuple(block for one in rounds for block in _files(one))
    yield FoldedBlocks(inlines("Command lines and files"), files, "remarks")


def _round(one: Round) -> Block:
    verdict = set_tone("valid", "good") if one.verdict.valid else set_tone("invalid", "warn")
    summary = inlines(f"{one.id}: {what_of(one)} ", verdict)
    return FoldedBlocks(summary, tuple(_parts(one)), "round", is_open=not one.verdict.valid)


def _parts(one: Round) -> Iterator[Block]:
    if one.verdict.findings:
        yield Listing(tuple(inlines(set_tone(found.text, "warn")) for found in one.verdict.findings))
    yield _tools((one,), several=False)
    yield from _counted((one,), several=False)
    if one.connection_table:
        yield caption(f"The DUT's connection table: {one.connection_table.words}.")
    if failure := failure_note(one):
        yield paragraph(f"Link failure: {failure}.")
    for bond in one.bonds:
        yield from _bond(bond)
    yield from (caption(f"CPUs of {_cpu(cpu)}.") for cpu in one.cpu)
    yield FoldedBlocks(inlines("Command lines and files"), tuple(_files(one)), "remarks")


_COLUMNS: Final = 6


def _tools(rounds: Sequence[Round], *, several: bool) -> Block:
    def rows() -> Iterator[Row]:
        for one in rounds:
            if several:
                yield _about(one)
            for job, outcome in pairs_of(one):
                yield row(*job_cells(job, outcome), look="invalid" if outcome.failure else "")

    titles = (
        head("Ends"),
        *word_heads("Tool", "Asked", "What it said"),
        head("Began", "s"),
        head("Took", "s"),
    )
    return replace(table((titles,), rows()), title="their tools" if several else "")


def _about(one: Round) -> Row:
    """Returns the row above those of a round: its name, and what was played in it."""
    held = f"; the DUT's connection table: {one.connection_table.words}" if one.connection_table else ""
    label = Cell(inlines(f"{one.id}: {what_of(one)}{held}"), _COLUMNS, is_head=True, words=True)
    return replace(row(label, look="about"), begins_group=True)


def job_cells(job: Job, outcome: JobOutcome) -> Iterator[Cell]:
    """Yields what a tool was asked, its figures in words or why they are missing, and when it ran."""
    versions = dict.fromkeys(each for each in (outcome.version, outcome.server_version) if each)
    tool = job.workload if job.role == "load" else f"{job.workload} ({job.role})"
    figures = () if outcome.figures is None else _figures(outcome.figures)
    yield name(_ends(job))
    yield words(f"{tool} {', '.join(versions) or UNKNOWN}")
    yield words(asked_words(job.ask))
    yield words(lines((*((outcome.failure,) if outcome.failure else ()), *figures, *outcome.notes)))
    for time_s in (outcome.began_s, outcome.took_s):
        yield cell(UNKNOWN if time_s is None else f"{time_s:.3f}")


def _counted(rounds: Sequence[Round], *, several: bool) -> Iterator[Block]:
    counted = [(one, rows) for one in rounds if (rows := list(_counted_rows(one)))]
    if not counted:
        return
    ways = heads("by the tools", "by the interface")
    above = (
        (NOTHING, head("Sent [bytes]", columns=2), head("Received [bytes]", columns=2), NOTHING),
        (head("Port"), *ways, *ways, *word_heads("Other counters that rose")),
    )
    body = (each for one, rows in counted for each in (*((_about(one),) if several else ()), *rows))
    yield replace(table(above, body), title="what interfaces counted" if several else "")


def _bond(seen: BondObservation) -> Iterator[Block]:
    """Yields what the ports of a bond counted, bytes of frames over the whole round, and beside it what was predicted
    (payload) and counted (frames) until the middle of the round; then the ports of its connections.
    """
    bond = seen.bond

    def of_port(port: BondPort) -> tuple[Cell, ...]:
        counted = seen.ports.get(port.name)
        sent = [flow.connection.sent_bytes for flow in seen.flows if flow.port == port.name]
        is_known = seen.flows and all(flow.port is not None for flow in seen.flows) and None not in sent
        predicted = sum(count or 0 for count in sent) if is_known else None
        of_round = (None, None, None) if counted is None else (counted.sent, counted.received, counted.sent_until_midst)
        state = ["usable" if port.usable else "not used"]
        if port.speed_bits_per_s is not None:
            state.append(format_bits_per_s(port.speed_bits_per_s))
        if port.aggregator is not None and port.aggregator != bond.aggregator:
            state.append(f"in aggregator {port.aggregator}")
        return (
            name(port.name),
            words(", ".join(state)),
            *(cell(whole(number)) for number in (*of_round[:2], predicted, of_round[2])),
        )

    title = [f"{bond.name} of {seen.endpoint}", bond.mode]
    if bond.policy and bond.mode in HASHED_MODES:
        title.append(bond.policy)
    if bond.aggregator is not None:
        partner = f", partner {bond.partner_mac}" if bond.partner_mac else ""
        title.append(f"active aggregator {bond.aggregator}{partner}")
    if bond.active_port is not None:
        title.append(f"active port {bond.active_port}")
    over = (
        head(f"Bond {', '.join(title)}", words=True, columns=2),
        head("Whole round [bytes]", columns=2),
        head("Sent until its midst [bytes]", columns=2),
    )
    columns = head("Port"), *word_heads("State"), *heads("sent", "received", "payload, predicted", "frames, counted")
    yield table((over, columns), map(of_port, bond.ports))
    if seen.confirmed:
        more = f": {seen.why}" if seen.why else ""
        yield caption(f"The counters of its ports support the prediction{more}.")
    elif seen.confirmed is None and not any(flow.port for flow in seen.flows):
        yield caption(f"No port could be predicted: {seen.why}.")
    else:
        yield caption(f"Predicted, not confirmed by the counters, because {seen.why}.")
    if seen.flows:
        summary = f"Connections in the midst of the round: {len(seen.flows)}"
        yield FoldedBlocks(inlines(summary), tuple(caption(_connection(flow)) for flow in seen.flows), "remarks")


def _connection(flow: BondFlow) -> str:
    one = flow.connection
    jobs = ", ".join(map(str, flow.jobs))
    ends = ((one.source, one.source_port), (one.destination, one.destination_port))
    source, destination = (f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in ends)
    moved = ""
    if one.sent_bytes is not None:
        moved = f", {whole(one.sent_bytes)} bytes sent, {whole(one.received_bytes or 0)} received"
    return f"job {jobs}, {one.transport.upper()} {source} to {destination}{moved}: {flow.port or flow.why}"


def _files(one: Round) -> Iterator[Block]:
    for outcome in one.outcomes:
        for side, command in (("client", outcome.client_command), ("server", outcome.server_command)):
            if command:
                yield caption(code(f"{side}: {shlex.join(command)}"))
        yield caption(join_inlines(", ", map(breakable, outcome.files)))
