"""``make bench``: nicbench beside its peers, all rows of benchmarks/README.md in one run."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Callable
from contextlib import ExitStack

import cable
import connections
import core_watch
import cycles
import flows
import frames
import generate_memory
import growth
import hook_connections
import memif_floor
import runs_folder
import serve
import validity
from core_watch import CoreWatch
from machine import ClockProbe, Cpus, huge_pages, two_cpus
from pairs import HEADER, Row
from veth_rows import veth_rows

Maker = Callable[[ExitStack, Cpus, tuple[str, ...], float], list[Row]]
GROUPS: dict[str, Maker] = {
    "null": generate_memory.null_rows,
    "two-cores": generate_memory.two_core_rows,
    "forward": generate_memory.forward_rows,
    "veth": veth_rows,
    "cable": cable.cable_rows,
    "frames": frames.frame_rows,
    "connections": connections.connection_rows,
    "hook": hook_connections.hook_rows,
}
# Of processes that each give the medians of many stretches.
WHOLE_RUNS = 3
# Of 2 MiB each, for all processes that are up at once.
HUGE_PAGES = 480


def main() -> int:
    """Prints the table; status 1 where a target is missed and ``--strict`` is given."""
    options = parse_arguments()
    # What was changed is undone and every process ended also where this one is told to end.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if not generate_memory.is_root():
        print("bench: namespaces and huge pages need root\n  next: call it with sudo", file=sys.stderr)
        return 3
    cpus = two_cpus()
    if options.tiny:
        options.pairs, options.seconds = 1, 0.02
        CoreWatch.patience_s, CoreWatch.warm_up_s = 0.0, 0.1
    with huge_pages(0 if options.tiny else HUGE_PAGES) as granted:
        granted = granted and not options.tiny
        pages = ("--in-memory",) if granted else ("--no-huge",)
        kind = "huge" if granted else "small"
        print(f"{kind} pages; workers on CPU {cpus.worker} and {cpus.other}; bursts of 32, {options.pairs} pairs")
        problem = validity.check(cpus, granted)
        print(
            f"validity: {problem or 'over net_ring every sequence number came once per flow, no stamp fell'}",
            flush=True,
        )
        rows: list[Row] = []
        for name, make in GROUPS.items():
            if name in options.only:
                rows.extend(group(make, cpus, pages, options, problem))
        if "cycles" in options.only:
            runs = min(WHOLE_RUNS, options.pairs)
            asked = (cpus, granted, options.seconds, options.pairs)
            sections: tuple[Callable[[], list[str]], ...] = (
                lambda: cycles.analyse_lines(cpus.worker, runs),
                lambda: cycles.kernel_lines("receive", cpus.worker, runs),
                lambda: cycles.kernel_lines("generate", cpus.worker, runs),
                lambda: cycles.feature_lines(*asked),
                lambda: cycles.scaling_lines(*asked),
            )
            for lines in sections:
                print("\n" + "\n".join(lines()), flush=True)
        if "delay" in options.only:
            print("\n" + "\n".join(cable.delay_lines(cpus, options.seconds, options.pairs)), flush=True)
        if "memif" in options.only:
            print("\n" + "\n".join(memif_floor.floor_lines(cpus, pages, options.seconds, options.pairs)), flush=True)
    if "flows" in options.only:
        print("\n" + "\n".join(flows.growth_lines(20_000 if options.tiny else 2_000_000)), flush=True)
    if "looks" in options.only:
        print("\n" + "\n".join(core_watch.look_lines(cpus.worker)), flush=True)
    if "growth" in options.only:
        growing = ((10, 20, 40), 1) if options.tiny else ()
        print("\n" + "\n".join(growth.growth_lines(*growing)), flush=True)
    folders = (600, None, 1) if options.tiny else ()
    slow = "runs" in options.only and not runs_folder.of_many_runs(*folders)
    slow = ("serve" in options.only and not serve.of_many_flows(*((1,) if options.tiny else ()))) or slow
    missed = [row for row in rows if row.verdict(options.pairs) not in ("", "met")]
    return 1 if options.strict and (missed or slow) else 0


def group(
    make: Maker, cpus: Cpus, pages: tuple[str, ...], options: argparse.Namespace, problem: str | None
) -> list[Row]:
    """The pairs of some rows, interleaved; each row is printed when it has all of its pairs.

    The core's clock is probed before and after each round.
    """
    with ExitStack() as stack:
        probe = ClockProbe(cpus.worker)
        rows = make(stack, cpus, pages, options.seconds)
        for row in rows:
            row.void = row.void or problem
        if rows:
            print(f"\n{HEADER}", flush=True)
        probe.take()
        while open_rows := [row for row in rows if not row.is_complete(options.pairs)]:
            for row in open_rows:
                row.take()
                if row.is_complete(options.pairs):
                    print(row.line(options.pairs), flush=True)
            probe.take()
        clocks = [clock / 1e9 for clock in probe.seen_hz]
        print(f"{make.__name__}: core clock {min(clocks):.2f} to {max(clocks):.2f} GHz", flush=True)
    return rows


def parse_arguments() -> argparse.Namespace:
    """The options with their defaults."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--pairs", type=int, default=15, help="how many quiet pairs are wanted (15)")
    parser.add_argument("--seconds", type=float, default=0.3, help="measured time of each sample [s] (0.3)")
    groups = [*GROUPS, "cycles", "delay", "memif", "flows", "looks", "growth", "runs", "serve"]
    parser.add_argument("--only", nargs="+", default=groups, choices=groups, help="some groups of rows (all)")
    parser.add_argument(
        "--tiny", action="store_true", help="try that every row can be measured; its figure says nothing"
    )
    parser.add_argument("--strict", action="store_true", help="status 1 where a target is not reached")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
