"""What commands cost, in numbers that other processes do not change: the modules that are loaded, and the calls of
Python functions.

Modules and calls of the standard library are not counted, nor are resumptions of coroutines, which depend on how the
answers of an engine arrive. ``python -m tests.run.counted`` prints ``budgets.toml`` anew.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Mapping
from cProfile import Profile
from dataclasses import dataclass
from inspect import CO_ASYNC_GENERATOR, CO_COROUTINE, CO_GENERATOR
from pathlib import Path
from typing import Final

from tests.commands import run_captured

import nicbench

OURS: Final = os.path.dirname(nicbench.__file__)
_THEIRS: Final = f"{os.sep}site-packages{os.sep}"
_MODULE: Final = "tests.run.counted"
_RESUMED: Final = CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR


BENCH: Final = """
nicbench: 1
title: Counted
lab: {{kind: simulated, capacity: 40 kpps, queue_frames: 16, delay: 20 us}}
dut: {{kind: simulated}}
monitor: off
tests:
  - name: throughput
    method: throughput
    frame_bytes: [64]
    search: {{maximum_trials: 4}}
    trial: {{duration: 20 ms, drain: 5 ms, settle: 0 s}}
  - name: sweep
    method: load-sweep
    of: 10 kpps
    frame_bytes: [64]
    loads: [{loads}]
    trial: {{duration: 20 ms, drain: 5 ms, settle: 0 s}}
"""
FEW, MANY = 2, 12
"""Loads of two runs, whose difference is what a trial costs."""


@dataclass(frozen=True)
class Cost:
    """What was loaded and called, by package."""

    modules: Mapping[str, int]
    calls: Mapping[str, int]
    functions: Mapping[str, int]
    """Calls of each function, as ``PACKAGE: NAME in FILE``."""


def package_of(file: str) -> str | None:
    """Returns ``nicbench.PART`` or the name of another package; None for the standard library and what has no file."""
    if file.startswith(OURS):
        part = os.path.relpath(file, OURS).split(os.sep)[0]
        return f"nicbench.{part.removesuffix('.py')}"
    _, theirs, within = file.rpartition(_THEIRS)
    return within.split(os.sep)[0].removesuffix(".py") if theirs else None


def count(words: list[str]) -> tuple[list[str], dict[str, int]]:
    """Runs the command; returns the modules that it loaded, and the calls of each function as ``PACKAGE: NAME``."""
    profiles = [Profile(builtins=False)]

    def count_in_thread(*_: object) -> None:
        profiles.append(Profile(builtins=False))
        profiles[-1].enable()  # in the place of this function, for the rest of the thread

    before = set(sys.modules)
    threading.setprofile(count_in_thread)
    profiles[0].enable()
    try:
        from nicbench.cli.app import run_command

        if words[:1] == ["run"]:
            _ask_no_machine()
        status = run_command(words)
    finally:
        profiles[0].disable()
        threading.setprofile(None)  # type: ignore[arg-type]  # as the documentation of it says
    if status:
        sys.exit(status)
    by_name = Counter()
    for entry in (entry for profile in profiles for entry in profile.getstats()):
        code = entry.code
        package = package_of(code.co_filename)
        if package is not None and not code.co_flags & _RESUMED and not code.co_name.startswith("<"):
            by_name[f"{package}: {code.co_qualname} in {os.path.basename(code.co_filename)}"] += entry.callcount
    files = {name: getattr(module, "__file__", None) or "" for name, module in sys.modules.items()}
    loaded = [name for name in sorted(set(files) - before) if package_of(files[name])]
    return [f"{package_of(files[name])}: {name}" for name in loaded], dict(by_name)


def _ask_no_machine() -> None:
    """What a machine says of itself is not counted, as machines differ."""
    from nicbench.stages import plan

    from .simulated_bench import nothing_told

    plan.collect = nothing_told


def costs_in(folder: Path) -> dict[str, Cost]:
    """Returns what each command, and a simulated trial, costs; ``folder`` is empty, and used for their files."""
    for loads in (FEW, MANY):
        percents = ", ".join(f"{100 - number} %" for number in range(loads))
        (folder / f"{loads}.yaml").write_text(BENCH.format(loads=percents))
    runs = {
        loads: ("run", f"{loads}.yaml", "--runs", str(loads), "--no-progress", "--no-report") for loads in (FEW, MANY)
    }
    completing = {"_NICBENCH_COMPLETE": "complete_bash", "COMP_WORDS": "nicbench\nrun\n--ru", "COMP_CWORD": "2"}
    found = {
        "--help": _cost(folder, "--help"),
        "completion of an option of run": _cost(folder, environment=completing),
        "validate": _cost(folder, "validate", f"{FEW}.yaml"),
        "run of a few trials": _cost(folder, *runs[FEW]),
        "report of a few trials": _cost(folder, "report", "latest", "--runs", str(FEW)),
    }
    few, many = found["run of a few trials"], _cost(folder, *runs[MANY])
    return found | {
        "a simulated trial": Cost({}, _per_trial(few.calls, many.calls), _per_trial(few.functions, many.functions))
    }


def _per_trial(few: Mapping[str, int], many: Mapping[str, int]) -> dict[str, int]:
    each = {name: round((number - few.get(name, 0)) / (MANY - FEW)) for name, number in many.items()}
    return {name: number for name, number in each.items() if number}


def _cost(folder: Path, *words: str, environment: Mapping[str, str] | None = None) -> Cost:
    """Counts one command in a process of its own."""
    out = folder / "counted.json"
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("COLUMNS", "NO_COLOR", "FORCE_"))}
    command = [sys.executable, "-m", _MODULE, str(out), *words]
    path = os.pathsep.join([str(Path(__file__).parents[2]), *sys.path])
    fixed = {"PYTHONPATH": path, "PYTHONHASHSEED": "0", "COLUMNS": "100"}
    run_captured(command, cwd=folder, env=kept | fixed | dict(environment or {}))
    modules, functions = json.loads(out.read_text())
    calls = Counter()
    for name, number in functions.items():
        calls[name.partition(":")[0]] += number
    return Cost(Counter(name.partition(":")[0] for name in modules), calls, functions)


def _main() -> None:
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(json.dumps(count(sys.argv[2:])))
        return
    with tempfile.TemporaryDirectory() as folder:
        for name, cost in costs_in(Path(folder)).items():
            print(f"\n[{json.dumps(name)}]")
            for kind, numbers in (("modules", cost.modules), ("calls", cost.calls)):
                if numbers:
                    print(f"{kind} = {sum(numbers.values())}")
                    most = {name: number for name, number in numbers.items() if number > sum(numbers.values()) / 50}
                    parts = [f"{json.dumps(name)} = {number}" for name, number in sorted(most.items())]
                    print(f"{kind}_of = {{{', '.join(parts)}}}")


if __name__ == "__main__":
    _main()
