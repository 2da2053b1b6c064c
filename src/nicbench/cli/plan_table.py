"""Prints the plan of a bench file for ``validate`` and ``tune``: what would be measured and tuned, and for how long."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, Final

from pydantic import BaseModel
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from nicbench.bench_file import BenchFile, Choice
from nicbench.bench_file.checks import describe_checks
from nicbench.bench_file.frame_sizes import describe_headers, smallest_frame_bytes
from nicbench.bench_file.overlays import list_differences
from nicbench.cli.output import FORMAT, print_line, print_table
from nicbench.cli.progress import ABOUT
from nicbench.core.described import shape_of
from nicbench.core.frame_size import size_label, words_of
from nicbench.core.headers import FieldValue
from nicbench.core.pattern import Pattern
from nicbench.core.plan import Outcome, PlannedSetting
from nicbench.core.traffic import Traffic
from nicbench.core.turn import DEFAULT, Turn
from nicbench.core.units import format_duration_s, format_rate
from nicbench.report.facts import written_text
from nicbench.stages.hosts import Presence
from nicbench.stages.tester import estimate_s, foretell_driver, plan_calibration, turns_s
from nicbench.testbed.interfaces.base import Port
from nicbench.tuning.setting import values_in_words

_OUTCOME_WORDS: Final = {
    Outcome.CHANGED: "would be changed",
    Outcome.ALREADY: "already set",
    Outcome.SKIPPED: "skipped",
    Outcome.MET: "as expected",
    Outcome.NOT_MET: "not as expected",
    Outcome.FAILED: "cannot be set",
}


def print_tuning(console: Console, settings: Sequence[PlannedSetting]) -> None:
    """Prints each setting with its present and future value; below, what cannot be set, with the reason."""
    if not settings:
        print_line("nothing to tune: the bench file has no `tuning` section", console)
        return
    compared = any(setting.configuration != DEFAULT for setting in settings)
    heads = ("host", "interface", "item", "from", "now", "would become", "outcome")
    print_table(
        console,
        ("configuration", *heads) if compared else heads,
        ((setting.configuration, *_tuned(setting)) if compared else _tuned(setting) for setting in settings),
    )
    for setting in settings:
        if setting.reason is not None:
            place = ", ".join(part for part in (setting.host, setting.device) if part)
            print_line(f"{setting.item} ({place}): {setting.reason}", console)
    refused = sum(setting.outcome is Outcome.FAILED for setting in settings)
    console.print(f"{refused} cannot be set; a run would be refused" if refused else "nothing was changed")


def _tuned(setting: PlannedSetting) -> tuple[str, ...]:
    outcome = "not known yet" if setting.outcome is None else _OUTCOME_WORDS[setting.outcome]
    asked = setting.asked if setting.asked or setting.outcome is None else None
    now, becomes = (values_in_words(values) or "-" for values in (setting.now, asked))
    return (setting.host, setting.device or "-", setting.item, setting.source, now, becomes, outcome)


def tuning_document(settings: Sequence[PlannedSetting], presence: Presence | None = None) -> dict[str, Any]:
    """Returns the settings for programs, with what was looked for on this machine where that was done."""
    looked = {} if presence is None else {"presence": presence.document()}
    return {"format": FORMAT, "settings": [setting.model_dump(mode="json") for setting in settings], **looked}


def print_plan(console: Console, bench: BenchFile, presence: Presence) -> None:
    """Prints the plan for people; where the bench file compares configurations, of each of them."""
    console.print(f"[bold]{escape(bench.title)}[/bold]")
    for each in bench.configurations:
        if bench.compared:
            console.print(f"configuration [bold]{escape(each.configuration)}[/bold]")
        for name, text in _settings_of_rounds(each) if each.measures == "rounds" else _settings_of_frames(each):
            print_line(f"  {name:<8} {text}", console)
        if each is bench.configurations[0] or not _measures_the_same(each, bench.configurations[0]):
            _print_tests(console, each)
    if len(bench.turns) > 1:
        _print_turns(console, bench)
    if (wishes := bench.optimise) is not None:
        combinations = prod(map(len, wishes.space.values()))
        many = f"{wishes.trials} trials among {combinations:,} combinations, then {2 * wishes.runs} runs that confirm"
        print_line(f"a search of `nicbench optimise`: {many}; what follows is of one run", console)
    if (driver := foretell_driver(bench)) is not None:
        print_line(f"driver of the tester's interfaces: {driver}", console)
    print_line(f"estimated duration: {_duration(bench)}, without {_not_estimated(bench)}", console)
    for test, deviations in _by_test(bench, lambda method: method.deviations()).items():
        console.print(f"{escape(test)} deviates from the standard, which the report will state:")
        for deviation in deviations:
            print_line(f"  {deviation}", console)
    for test, left_out in _by_test(bench, _not_measured).items():
        console.print(f"{escape(test)} asks for what will not be measured, which its result will state:")
        for text in left_out:
            print_line(f"  {text}", console)
    statements = bench.tester_kind().statements() if bench.measures == "frames" else ()
    if statements:
        console.print(f"limitations of the tester {bench.tester.kind}, which the report will state:")
    for statement in statements:
        print_line(f"  {statement}", console)
    console.print("checked:")
    for phrase in describe_checks(bench.measures):
        print_line(f"  {phrase}", console)
    _print_presence(console, presence)
    absent = len(presence.absent)
    named = "1 thing that it names is" if absent == 1 else f"{absent} things that it names are"
    lack = f"; but {named} missing on this machine, so a run would be refused"
    print_line(f"{bench.path} is valid{lack if absent else ''}", console)


def _print_presence(console: Console, presence: Presence) -> None:
    """Prints what was looked for on this machine and what is absent; nothing where the file names nothing of it."""
    if presence.looked_for:
        print_line(f"checked on this machine: {', '.join(presence.looked_for)}", console)
    for head, lines in (("missing:", presence.absent), ("not checked:", presence.not_looked_at)):
        if lines:
            console.print(head)
        for line in lines:
            print_line(f"  {line}", console)


def _by_test(bench: BenchFile, told: Callable[[Any], tuple[str, ...]]) -> dict[str, dict[str, None]]:
    """Returns the notes on the method of each test over all configurations, each once."""
    found: dict[str, dict[str, None]] = {}
    for test in (test for each in bench.configurations for test in each.tests):
        for text in told(test.build()):
            found.setdefault(test.name, {})[text] = None
    return found


def _not_measured(method: Any) -> tuple[str, ...]:
    return tuple(method.not_measured()) if method.measures == "rounds" else ()


def _print_turns(console: Console, bench: BenchFile) -> None:
    """Prints what differs between configurations, and the order of turns."""
    if bench.compared:
        names = [each.configuration for each in bench.configurations]
        print_table(
            console,
            ("what differs", *names),
            (
                (row.setting, *("-" if (value := row.values[name]) is None else value for name in names))
                for row in list_differences(bench)
            ),
        )
    if bench.runs.grows or bench.runs.warm_up:
        print_line(f"runs of each configuration: {bench.runs.words}", console)
    order = ", ".join(turn.short for turn in bench.turns)
    print_line(f"order (configuration and run, drawn with seed {bench.seed}): {order}", console)


def _duration(bench: BenchFile) -> str:
    """Formats the estimated duration; where the number of runs grows, also for the fewest runs."""
    whole = f"{ABOUT} {_whole_seconds(turns_s(bench, bench.turns))}"
    if not bench.runs.grows:
        return whole
    least, shortest = (
        bench.runs.fewest_runs(len(bench.configurations)),
        _whole_seconds(turns_s(bench, bench.sure_turns)),
    )
    return f"{ABOUT} {shortest} where {least} runs of each are enough, {whole} with {bench.runs.at_most}"


def _not_estimated(bench: BenchFile) -> str:
    turns, sure = len(bench.turns), len(bench.sure_turns)
    several = f"the making of {turns if turns == sure else f'{sure} to {turns}'} testbeds"
    if bench.measures == "rounds":
        return f"{several if turns > 1 else 'the making of the testbed'}, preparations and repeats"
    return f"repeats and {several}" if turns > 1 else "repeats"


def _measures_the_same(one: BenchFile, other: BenchFile) -> bool:
    return one.tests == other.tests and str(plan_calibration(one)) == str(plan_calibration(other))


def _print_tests(console: Console, bench: BenchFile) -> None:
    table = Table(header_style="bold")
    table.add_column("test")
    table.add_column("method")
    table.add_column("points", justify="right")
    sends_frames = bench.measures == "frames"
    table.add_column(r"frame sizes \[bytes]" if sends_frames else "tools", overflow="fold")
    table.add_column(ABOUT, justify="right")
    for test in bench.tests:
        method = test.build()
        sizes = ", ".join(map(str, method.frame_sizes()) if sends_frames else tools_of(method))
        table.add_row(
            escape(test.name), test.method_kind, str(method.points()), sizes, _whole_seconds(method.estimate_s())
        )
    console.print(table)
    if not sends_frames:
        return
    print_line(str(plan_calibration(bench)), console)


def tools_of(method: Any) -> list[str]:
    """Lists the workloads of a method of rounds, each once."""
    return list(dict.fromkeys(choice.kind for choice, _ in method.job_specs()))


def plan_document(bench: BenchFile, presence: Presence) -> dict[str, Any]:
    """Returns the plan for programs. The top level is the first configuration's; the duration covers all turns."""
    document = {**_document(bench), "estimate_s": turns_s(bench, bench.turns), "presence": presence.document()}
    if (driver := foretell_driver(bench)) is not None:
        document["driver"] = driver
    if len(bench.turns) > 1:
        document["runs"] = bench.runs.at_most
        document["turns"] = [_turn_document(turn) for turn in bench.turns]
    if bench.runs.grows or bench.runs.warm_up:
        document["how_often"] = bench.runs.model_dump()
        document["estimate_least_s"] = turns_s(bench, bench.sure_turns)
    if bench.compared:
        document["differences"] = [row.model_dump() for row in list_differences(bench)]
        document["configurations"] = {each.configuration: _document(each) for each in bench.configurations}
    return document


def _turn_document(turn: Turn) -> dict[str, Any]:
    place = {"configuration": turn.configuration, "run": turn.run}
    return {**place, "warm_up": True} if turn.warm_up else place


def _document(bench: BenchFile) -> dict[str, Any]:
    tests = [(test, test.build()) for test in bench.tests]
    return {
        "format": FORMAT,
        "title": bench.title,
        "valid": True,
        "lab": _plain(bench.lab) if bench.lab else None,
        "dut": _plain(bench.dut),
        **(_frames_document(bench) if bench.measures == "frames" else {}),
        "tests": [
            {
                "name": test.name,
                "method": test.method_kind,
                "points": method.points(),
                "estimate_s": method.estimate_s(),
                "options": test.options.model_dump(mode="json"),
                **({"not_measured": left_out} if (left_out := _not_measured(method)) else {}),
            }
            for test, method in tests
        ],
        "estimate_s": estimate_s(bench),
        "deviations": _deviations(bench),
        "checked": list(describe_checks(bench.measures)),
    }


def _frames_document(bench: BenchFile) -> dict[str, Any]:
    """Returns the tester and its calibration, which rounds of workloads do not have."""
    calibration = plan_calibration(bench)
    return {
        "tester": {**_plain(bench.tester), "statements": list(bench.tester_kind().statements())},
        "calibration": {
            "ceilings": [size_label(size) for size in calibration.ceilings],
            "latencies": [size_label(size) for size in calibration.latencies],
            "estimate_s": calibration.estimate_s,
        },
    }


def _settings_of_rounds(bench: BenchFile) -> list[tuple[str, str]]:
    return [
        *([("lab", bench.lab.kind + _options(bench, "lab", bench.lab))] if bench.lab else []),
        *_hosts(bench),
        *(("port", text) for text in _describe_made_ports(bench)),
        *([("links", ", ".join(f"{one} <-> {other}" for one, other in bench.links))] if bench.links else []),
        ("DUT", bench.dut.kind + _options(bench, "dut", bench.dut)),
        ("seed", str(bench.seed)),
    ]


def _hosts(bench: BenchFile) -> list[tuple[str, str]]:
    """Lists each host with the one that it is made on."""
    return [
        ("host", f"{name}: {host.kind}{_written_options(host.options)}{f' on {host.on}' if host.on else ''}")
        for name, host in bench.hosts.items()
    ]


def _describe_made_ports(bench: BenchFile) -> list[str]:
    """Lists the ports on which an address or a soft RoCE device is made."""
    return [
        f"{name}: {port.host} {port.device}, {', '.join(words)}"
        for name, port in bench.ports.items()
        if (words := _describe_making(port))
    ]


def _describe_making(port: Port) -> list[str]:
    given = [] if port.given_ip is None else [f"given {port.given_ip}"]
    return [*given, *([] if port.rdma is None else [f"soft RoCE ({port.rdma}) over it"])]


def _written_options(options: BaseModel) -> str:
    """Formats the options that were written: " (address 10.0.0.5, user root)"."""
    return _in_brackets(options.model_dump(mode="json", exclude_unset=True), options)


def _in_brackets(written: Mapping[str, Any], options: BaseModel) -> str:
    return f" ({written_text(written, shape_of(type(options)))})" if written else ""


def _settings_of_frames(bench: BenchFile) -> list[tuple[str, str]]:
    traffic = bench.traffic
    both_ways = traffic.bidirectional or traffic.pattern.goes_both_ways
    ways = "both directions at once" if both_ways else "one direction"
    pattern = [] if traffic.pattern is Pattern.ONE_TO_ONE else [("pattern", traffic.pattern.words)]
    smallest = smallest_frame_bytes(traffic)
    together = f"{len(traffic.streams)} streams a port, " if traffic.streams else f"{_streams(traffic)[0]}, "
    together += f"{100.0 * traffic.broadcasts:g} % broadcasts, " if traffic.broadcasts else ""
    ports = [port.name for port in bench.tester_kind().own_ports()] or list(bench.ports)
    where = ("lab", bench.lab.kind + _options(bench, "lab", bench.lab)) if bench.lab else ("ports", ", ".join(ports))
    links = [("links", ", ".join(f"{one} <-> {other}" for one, other in bench.links))] if bench.links else []
    own_tester = ("tester", bench.tester.kind + _options(bench, "tester", bench.tester))
    return [
        where,
        *(_hosts(bench) if bench.lab and bench.lab.on else []),
        *links,
        ("DUT", bench.dut.kind + _options(bench, "dut", bench.dut)),
        *([own_tester] if bench.written.get("tester") else []),
        *(("stream", text) for text in _streams(traffic) if traffic.streams),
        *pattern,
        ("traffic", f"{together}{ways}; the smallest frame is {smallest} bytes"),
        *(("mix", f"{name}: {mix}") for name, mix in _mixes(bench)),
        ("seed", str(bench.seed)),
    ]


def _streams(traffic: Traffic) -> list[str]:
    """Describes each stream of a port on a line."""
    lines = []
    for stream in traffic.port_streams():
        part = format_rate(stream.rate) if stream.rate is not None else f"{100 * (stream.share or 0.0):g} %"
        share = f"{stream.name}, {part}: " if traffic.streams else ""
        flows = "" if stream.pcap or stream.raw_frame else f", {stream.flows} flows"
        fields = ", ".join(f"{name} {_field(value)}" for name, value in stream.fields.given_fields().items())
        bursts = f", bursts of {stream.burst_frames} frames" if stream.burst_frames else ""
        ends = f", at most {stream.frames} frames a trial" if stream.frames else ""
        headers = describe_headers(stream, traffic.ip)
        size = traffic.size_of(stream)
        own = "" if size is None or stream.pcap is not None else f", {words_of(size)}"
        lines.append(f"{share}{headers}{own}{flows}{f', {fields}' if fields else ''}{bursts}{ends}")
    return lines


def _field(value: FieldValue) -> str:
    if isinstance(value, int):
        return str(value)
    steps = f" in steps of {value.step}" if value.step > 1 else ""
    return f"{value.first} to {value.last}{steps}{f', drawn with seed {value.seed}' if value.seed is not None else ''}"


def _mixes(bench: BenchFile) -> list[tuple[str, str]]:
    """Lists the mixes that the tests send."""
    names = {size for test in bench.tests for size in test.build().frame_sizes() if isinstance(size, str)}
    mixes = {name: bench.traffic.mix(name) for name in sorted(names)}
    return [(name, str(mix or "the sizes of the capture, read when the run begins")) for name, mix in mixes.items()]


def _options(bench: BenchFile, section: str, choice: Choice) -> str:
    """Formats the options of a section as written, with their labels and units: " (rate 200 kpps, burst 4000)"."""
    written = bench.written.get(section)
    if not isinstance(written, dict):
        return ""
    return _in_brackets({key: value for key, value in written.items() if key != "kind"}, choice.options)


def _deviations(bench: BenchFile) -> list[str]:
    return [f"{test.name}: {text}" for test in bench.tests for text in test.build().deviations()]


def _plain(choice: Choice) -> dict[str, Any]:
    return {"kind": choice.kind, **choice.options.model_dump(mode="json")}


def _whole_seconds(duration_s: float) -> str:
    return format_duration_s(float(round(duration_s))) if duration_s >= 10.0 else format_duration_s(duration_s)
