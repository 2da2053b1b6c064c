"""Of a test with many cases, ``make test`` runs some, drawn by the session's seed; ``make acceptance`` runs them all.

``@pytest.mark.sampled(4)`` above a parametrized test leaves four of its cases, others in each session, so that in time
all are run. ``@pytest.mark.sampled(4, of="known truths")`` draws among the cases of all tests with these words, in
whichever files they are: tests of one kind take turns. ``--every-case`` leaves all of them, ``--cases 200`` so many of
each.
"""

from __future__ import annotations

import random
from collections import defaultdict

import pytest


def add_option(parser: pytest.Parser) -> None:
    parser.addoption("--every-case", action="store_true", help="run every case of the tests marked `sampled`")
    parser.addoption("--cases", type=int, default=None, help="draw so many cases of each test marked `sampled`")


def leave_drawn_cases(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselects the cases that were not drawn; every worker of xdist draws the same."""
    if config.option.every_case:
        return
    cases = defaultdict(list)
    counts = {}
    for item in items:
        marker = item.get_closest_marker("sampled")
        if isinstance(item, pytest.Function) and marker is not None and not item.get_closest_marker("acceptance"):
            group = marker.kwargs.get("of")
            drawn_among = (str(item.path), item.originalname) if group is None else ("", group)
            cases[drawn_among].append(item)
            counts[drawn_among] = config.option.cases or marker.args[0]
    left_out = set()
    for (where, name), of_test in cases.items():
        count = counts[where, name]
        draw = random.Random(f"{config.option.seed}/{name}")
        drawn = set(draw.sample(range(len(of_test)), min(count, len(of_test))))
        left_out.update(item for number, item in enumerate(of_test) if number not in drawn)
    if left_out:
        config.hook.pytest_deselected(items=[item for item in items if item in left_out])
        items[:] = [item for item in items if item not in left_out]
