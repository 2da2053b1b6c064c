"""Runs one target under Atheris, as a process of its own: ``python tests/fuzz/instrumented.py TARGET ARGUMENTS...``.

The arguments are libFuzzer's. Atheris lies in ``build/atheris`` (scripts/fuzz).
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "build" / "atheris")]

import atheris  # type: ignore[import-not-found]  # noqa: E402

name = sys.argv.pop(1)
with atheris.instrument_imports(include=["nicbench"]):
    from tests.fuzz import mutations, seeds, targets

    target = targets.TARGETS[name]
    for seed in list(seeds.seeds(name))[:20]:  # plug-ins are imported when they are first asked for
        target(seed)


def mutate(data: bytes, largest: int, seed: int) -> bytes:
    """One time in two a change that knows what the input is, else one of libFuzzer's."""
    draw = random.Random(seed)
    if draw.random() < 0.5:
        changed = mutations.mutate(name, data, draw)
        if changed is not None and len(changed) <= largest:
            return changed
    return atheris.Mutate(data, largest)


atheris.Setup(sys.argv, target, custom_mutator=mutate)
atheris.Fuzz()
