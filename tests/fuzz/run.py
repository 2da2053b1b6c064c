"""``scripts/fuzz``: runs the fuzzers of nicbench one after another, and keeps what they found.

Corpora and finds lie in ``~/.cache/nicbench/fuzz``. In the repository are a small part of each corpus, which its tests
try again, and ``record.tsv``, a line for each run: commit it, so that the hours of all machines add up.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.commands import run_checked, run_tried

ROOT: Final = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.fuzz import seeds  # noqa: E402

CACHE: Final = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "nicbench" / "fuzz"
RECORD: Final = ROOT / "tests" / "fuzz" / "record.tsv"
FUZZ: Final = ROOT / "engine" / "fuzz"
ATHERIS: Final = ROOT / "build" / "atheris"
MOST_KEPT_BYTES: Final = 15_000
"""Of one target, before base64: all together stay below 320 KB."""
LARGEST_KEPT_BYTES: Final = 3_000
LIMITS: Final = ("-timeout=30", "-report_slow_units=30", "-rss_limit_mb=3000")
"""What takes longer, in seconds, or more memory, is a find."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status 1 where something was found, 3 where a tool is missing."""
    parser = argparse.ArgumentParser(prog="scripts/fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0, metavar="N", help="for each target (default: 1)")
    parser.add_argument("--try", dest="tried", type=Path, metavar="FILE", help="try this input only, of one target")
    parser.add_argument("--keep", action="store_true", help="take new inputs into the repository's part of the corpus")
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"any of {', '.join(seeds.TARGETS)}")
    given = parser.parse_args(arguments)
    wanted = given.targets or list(seeds.TARGETS)
    if unknown := sorted({*wanted} - {*seeds.TARGETS}):
        parser.error(f"there is no target {', '.join(unknown)}; next: use {', '.join(seeds.TARGETS)}")
    if given.tried and len(wanted) != 1:
        parser.error("--try FILE needs the one target that the file is for")
    if given.tried and not given.tried.is_file():
        parser.error(f"{given.tried} is no file; next: look at {CACHE / 'found'}")
    if not given.minutes > 0:
        parser.error("--minutes is above 0")
    prepare(wanted)
    if given.keep:
        for target in wanted:
            print(f"{target}: {keep(target, [given.tried] if given.tried else [])} inputs are kept")
        return 0
    if given.tried:
        return subprocess.run([*command(wanted[0]), str(given.tried)], cwd=ROOT, check=False).returncode
    found = [path for target in wanted for path in fuzz(target, given.minutes)]
    for path in found:
        print(f"found: scripts/fuzz --try {path} {path.name.partition('-')[0]}")
    print(f"recorded in all: {recorded_hours():.2f} core hours ({RECORD.relative_to(ROOT)})")
    return 1 if found else 0


def prepare(targets: Sequence[str]) -> None:
    """Builds what they need. SystemExit with the next step where that cannot be."""
    if {*targets} & {*seeds.RUST}:
        if shutil.which("cargo-fuzz") is None:
            print("fuzz: cargo-fuzz is not installed\n  next: cargo install --locked cargo-fuzz", file=sys.stderr)
            raise SystemExit(3)
        # Without a sanitizer it builds with any compiler; overflows and broken bounds panic all the same.
        run_checked(["cargo", "fuzz", "build", "--sanitizer", "none"], cwd=FUZZ.parent)
    if {*targets} - {*seeds.RUST} and not (ATHERIS / "atheris").is_dir():
        pins = ROOT / "tests" / "fuzz" / "requirements.txt"
        install = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--require-hashes"]
        run_checked([*install, "--target", str(ATHERIS), "--requirement", str(pins)])


def command(target: str) -> list[str]:
    """The fuzzer of this target, to which libFuzzer's arguments are added."""
    if target not in seeds.RUST:
        return [sys.executable, str(ROOT / "tests" / "fuzz" / "instrumented.py"), target]
    host = re.search(r"^host: (\S+)", subprocess.check_output(["rustc", "-vV"], text=True), re.MULTILINE)
    assert host
    dictionary = FUZZ / f"{target}.dict"
    given = [f"-dict={dictionary}"] if dictionary.exists() else []
    return [str(FUZZ / "target" / host[1] / "release" / target), *given]


def corpus(target: str) -> Path:
    """The folder of all inputs of a target; seeds and what the repository keeps are put into it."""
    folder = CACHE / target
    folder.mkdir(parents=True, exist_ok=True)
    for seed in seeds.seeds(target):
        (folder / hashlib.sha1(seed, usedforsecurity=False).hexdigest()).write_bytes(seed)
    return folder


def fuzz(target: str, minutes: float) -> list[Path]:
    """Runs one target for so long, notes what that came to, and gives the files of what it found."""
    found = CACHE / "found"
    found.mkdir(parents=True, exist_ok=True)
    before = {*found.glob(f"{target}-*")}
    folder, prefix = corpus(target), f"-artifact_prefix={found}/{target}-"
    options = (*LIMITS, f"-max_total_time={round(minutes * 60)}", "-print_final_stats=1", prefix)
    log, used_s = CACHE / f"{target}.log", processor_s()
    with log.open("wb") as stream:
        run = [*command(target), str(folder), *options]
        subprocess.run(run, cwd=ROOT, stdout=stream, stderr=subprocess.STDOUT, check=False)
    said = log.read_text(errors="replace")
    executed = sum(int(number) for number in re.findall(r"number_of_executed_units: (\d+)", said))
    features = max((int(number) for number in re.findall(r"\bft: (\d+)", said)), default=0)
    new = sorted({*found.glob(f"{target}-*")} - before)
    columns = (
        *(time.strftime("%Y-%m-%dT%H:%M:%S"), target, f"{processor_s() - used_s:.1f}", executed, features),
        *(len(list(folder.iterdir())), len(new)),
    )
    if not RECORD.exists():
        RECORD.write_text("time\ttarget\tprocessor_s\texecutions\tfeatures\tinputs\tfound\n")
    with RECORD.open("a") as stream:
        stream.write("\t".join(map(str, columns)) + "\n")
    print(
        f"{target}: {executed} executions in {columns[2]} s of a core, {features} features, {len(new)} found",
        flush=True,
    )
    return new


def recorded_hours() -> float:
    """Returns the core hours of all recorded runs."""
    return sum(float(line.split("\t")[2]) for line in RECORD.read_text().splitlines()[1:]) / 3600


def processor_s() -> float:
    """CPU time of all children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def keep(target: str, first: Sequence[Path]) -> int:
    """Adds ``first``, and as many small inputs that reach something new as there is room for; gives their number."""
    kept = [*seeds.kept(target), *(path.read_bytes() for path in first)]
    with tempfile.TemporaryDirectory() as merged:
        folder = corpus(target)
        if target in seeds.RUST:  # Atheris cannot: there is in the corpus what reached something new when it was found
            run = [*command(target), "-merge=1", *LIMITS, merged, str(folder)]
            run_tried(run, cwd=ROOT)
            folder = Path(merged)
        found = sorted((path.read_bytes() for path in folder.iterdir()), key=lambda each: (len(each), each))
    small = [each for each in found if 0 < len(each) <= LARGEST_KEPT_BYTES]
    room = MOST_KEPT_BYTES - sum(map(len, kept))
    # Of all sizes, for large inputs reach where small ones do not.
    share = room / max(1, sum(map(len, small)))
    step = max(1, round(1 / share)) if share > 0 else len(small) + 1
    kept += [each for each in small[step - 1 :: step] if each not in kept]
    path = seeds.kept_file(target)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{base64.b64encode(each).decode()}\n" for each in dict.fromkeys(kept)))
    return len(kept)


if __name__ == "__main__":
    sys.exit(main())
