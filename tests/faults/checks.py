"""What must hold after every case, whatever happened in it."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.run.lab_bench import machine_state

from nicbench.core.events import Note, RoundFinished, TrialFinished
from nicbench.core.judging import Reason, Sample
from nicbench.core.result import Result, ResultVerdict
from nicbench.core.round import Round
from nicbench.report.gather import gather
from nicbench.store.folder import RunFolder

from .benches import PAYLOAD, Bench
from .controller import Ended
from .expecting import Expect
from .places import all_processes, command, ip


def state(namespaces: tuple[str, ...]) -> dict[str, Any]:
    """Of the machine, and of namespaces that were there before the run, all that a run may touch.

    No bench of a fault takes huge pages; tests that run beside do, and the pages are the whole machine's.
    """
    machine = {name: value for name, value in machine_state().items() if name != "huge pages"}
    found = {"machine": machine}
    for name in namespaces:
        if name not in ip("netns", "list").split():
            continue
        links = json.loads(ip("-n", name, "-j", "-d", "link", "show"))
        found[name] = {
            "links": {link["ifname"]: (link["mtu"], link.get("xdp", {}).get("prog")) for link in links},
            "addresses": _sorted(ip("-n", name, "-o", "address", "show")),
            "routes": _sorted(ip("-n", name, "route", "show", "table", "main")),
            "neighbours": _sorted(ip("-n", name, "neighbour", "show", "nud", "permanent")),
            "settings": command(
                "ip", "netns", "exec", name, "sysctl", "-a", "-r", r"net\.ipv4.*(forward|rp_filter|redir)"
            ),
            "rules": command("ip", "netns", "exec", name, "nft", "list", "ruleset"),
            "queues": _sorted(re.sub(r"qdisc (\w+) \w+:", r"qdisc \1", ip_queues(name))),
        }
    return found


def ip_queues(namespace: str) -> str:
    return command("tc", "-n", namespace, "qdisc", "show")


def _sorted(text: str) -> list[str]:
    return sorted(line.strip() for line in text.splitlines())


def differences(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """What is not as it was. Of an interface that the fault took away nothing can be as it was."""
    found = [
        f"{key}: {before['machine'][key]!r} -> {after['machine'][key]!r}"
        for key in before["machine"]
        if before["machine"][key] != after["machine"][key]
    ]
    for name in before:
        if name == "machine" or name not in after:
            continue
        lost = [link for link in before[name]["links"] if link not in after[name]["links"]]
        for part, was in before[name].items():
            one, other = (_without(lost, each) for each in (was, after[name][part]))
            if one != other:
                found.append(f"{name}, {part}: {one!r} -> {other!r}")
    return found


def _without(lost: list[str], part: Any) -> Any:
    if isinstance(part, dict):
        return {link: value for link, value in part.items() if link not in lost}
    lines = part.splitlines() if isinstance(part, str) else part
    return [line for line in lines if not any(re.search(rf"\b{re.escape(link)}\b", line) for link in lost)]


def processes_left(mark: str, patience_s: float = 5.0) -> dict[int, Any]:
    """What still runs of a case; a process that was just killed has a moment to be gone."""
    end = time.monotonic() + patience_s
    while (left := all_processes(mark)) and time.monotonic() < end:
        time.sleep(0.05)
    return left


def samples(folder: RunFolder) -> list[Sample]:
    """Every trial and round of the tests, in order; those of the tester alone are left out."""
    found = []
    for event in folder.journal.events():
        if isinstance(event, RoundFinished):
            found.append(event.round)
        elif isinstance(event, TrialFinished) and event.trial.request.purpose not in ("ceiling", "tester_latency"):
            found.append(event.trial)
    return found


def told(folder: RunFolder, ended: Ended) -> str:
    """All words in which the run could have told of a fault."""
    notes = [event.text for event in folder.journal.events() if isinstance(event, Note)]
    findings = [finding.text for sample in samples(folder) for finding in sample.verdict.findings]
    return "\n".join([" ".join(ended.said.split()), *notes, *findings])


def wrong_results(folder: RunFolder, bench: Bench) -> Iterator[str]:
    """Results that charge the device with what something else did, and samples that are valid and lost frames."""
    summary, measured = folder.summary(), samples(folder)
    for result in summary.results if summary is not None else ():
        for name, value in result.values.items():
            if value is not None and _is_wrong(result, name, value, bench, measured):
                yield f"{result.id} is {result.verdict} and says {name} {value}"
    for sample in measured:
        counts = getattr(getattr(sample, "reading", None), "counts", None)
        if counts is not None and sample.verdict.valid and (counts.lost or counts.corrupted):
            yield f"{sample.id} is valid, and lost {counts.lost} of {counts.sent}, {counts.corrupted} corrupted"


ON_THE_PATH = frozenset({"tester's port", "cable", "DUT's port", "DUT", "client"})
"""The places of faults that change what frames pass through."""


def wrong_changes(folder: RunFolder, place: str) -> Iterator[str]:
    """Samples in which somebody is said to have changed the path, where neither the fault nor the run did."""
    for sample in samples(folder) if place not in ON_THE_PATH else ():
        for finding in sample.verdict.findings:
            if finding.reason is Reason.CHANGED:
                yield f"{sample.id}: {finding.text}"


def _is_wrong(result: Result, name: str, value: Any, bench: Bench, measured: list[Sample]) -> bool:
    if bench.kind == "frames":
        return name == "loss_percent" and bool(value) and result.verdict is ResultVerdict.VALID
    if name != "throughput_bits_per_s" or result.verdict is not ResultVerdict.VALID:
        return False
    carried = max((_carried_bits_per_s(one, bench) for one in measured if one.id in result.trials), default=0.0)
    return not PAYLOAD[bench.bits_per_s] * (carried or bench.bits_per_s) <= value <= bench.bits_per_s


def _carried_bits_per_s(sample: Sample, bench: Bench) -> float:
    """The rate of the link, or less where its port counted less: the kernel keeps it, where others leave it time to."""
    ports = sample.counters.values() if isinstance(sample, Round) else ()
    counted = max((8.0 * port.get("rx_bytes", 0) for port in ports), default=0.0)
    return min(bench.bits_per_s, counted / bench.span_s)


def unexpected(ended: Ended, expect: Expect, folder: RunFolder | None) -> Iterator[str]:
    """What is not as the table says."""
    if ended.status not in expect.statuses:
        yield f"status {ended.status}, not {sorted(expect.statuses)}"
    if "Traceback" in ended.said:
        yield "a traceback"
    if folder is None:
        if expect.words and not re.search(expect.words, ended.said):
            yield f"no word of /{expect.words}/"
        return
    if (
        expect.words
        and (ended.status != 0 or 0 in expect.statuses)
        and not re.search(expect.words, told(folder, ended))
    ):
        yield f"no word of /{expect.words}/"
    summary = folder.summary()
    if ended.status == 0:
        if summary is None or summary.verdict not in expect.verdicts:
            yield f"the verdict {summary and summary.verdict}, not {sorted(expect.verdicts)}"
        reasons = {reason for sample in samples(folder) for reason in sample.verdict.reasons}
        # On a busy machine a fault may come behind the last frame: then the next trial sees it before it begins.
        came_behind = Reason.PEER_FAILED in expect.reasons and "no learning frame came back at first" in told(
            folder, ended
        )
        if expect.reasons and not reasons & expect.reasons and not came_behind:
            yield f"no sample was invalid for {sorted(expect.reasons)}, only for {sorted(reasons)}"
    elif ended.status > 0 and summary and summary.verdict is not ResultVerdict.INCOMPLETE and not measured_all(folder):
        yield f"it ended with status {ended.status}, and its verdict is {summary.verdict}"


def measured_all(folder: RunFolder) -> bool:
    """Whether the journal has the end of the run: what came afterwards cannot unmake its verdict."""
    return folder.journal.is_complete


def unreadable(path: Path, steps: list[str]) -> Iterator[str]:
    """What was measured before the fault is in the folder, and can be reported."""
    folder = RunFolder.open(path)
    finished = sum(step.startswith(("trial_finished", "round_finished")) for step in steps)
    kept = len(samples(folder))
    if kept < finished:
        yield f"{finished} samples were finished, and {kept} are kept"
    if kept:
        with suppress(StopIteration):
            gather(folder)
