"""What the fuzzers found worth keeping, tried again: inputs that reach far, and all that ever failed."""

from __future__ import annotations

import pytest
from tests.fuzz import mutations, seeds
from tests.fuzz.targets import TARGETS


def test_every_target_is_named_and_has_a_corpus() -> None:
    assert set(TARGETS) == set(seeds.PYTHON)
    assert all(seeds.kept_file(target).exists() for target in seeds.TARGETS)
    assert set(mutations.HEADS) <= set(TARGETS)


def test_the_corpus_stays_small() -> None:
    assert sum(seeds.kept_file(target).stat().st_size for target in seeds.TARGETS) < 400_000


@pytest.mark.parametrize("target", seeds.PYTHON)
def test_no_input_of_the_corpus_breaks_a_promise(target: str) -> None:
    kept = seeds.kept(target)
    assert len(kept) > 5
    for number, content in enumerate(kept, 1):
        try:
            TARGETS[target](content)
        except Exception as error:
            raise AssertionError(f"{seeds.kept_file(target)}:{number}") from error
