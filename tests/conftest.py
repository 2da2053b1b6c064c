"""What all tests share: a fresh seed for each session, printed for repeating it, and where the lab tests can run."""

from __future__ import annotations

import os
import random
import secrets

import pytest
from hypothesis import settings

from nicbench.engine.binary import find_binary
from nicbench.errors import NotReadyError

# Timings are never asserted, and the machine may be busy.
settings.register_profile("nicbench", deadline=None, print_blob=True)
settings.load_profile("nicbench")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--seed", type=int, default=None, help="repeat the random draws of an earlier session")


def pytest_configure(config: pytest.Config) -> None:
    if config.option.seed is None:
        config.option.seed = secrets.randbits(32)


def pytest_report_header(config: pytest.Config) -> str:
    return f"seed of the random draws: {config.option.seed} (repeat with --seed {config.option.seed})"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What a test recorded as ``shown``, from whichever process it ran in."""
    reports = [report for found in terminalreporter.stats.values() for report in found]
    recorded = (pair for report in reports for pair in getattr(report, "user_properties", ()))
    for text in dict.fromkeys(value for name, value in recorded if name == "shown"):
        terminalreporter.write_line(str(text))


@pytest.fixture
def session_seed(request: pytest.FixtureRequest) -> int:
    """The session's seed, printed in the header."""
    seed: int = request.config.option.seed
    return seed


@pytest.fixture
def draw(session_seed: int, request: pytest.FixtureRequest) -> random.Random:
    """Random draws of this test alone: the same for the same seed, whichever tests run beside it."""
    return random.Random(f"{session_seed}/{request.node.nodeid}")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Lab tests need root and the engine; without them they are skipped, with the reason in the closing lines."""
    reason = _why_no_lab()
    if reason is None:
        return
    for item in items:
        if item.get_closest_marker("lab"):
            item.add_marker(pytest.mark.skip(reason=reason))


def _why_no_lab() -> str | None:
    if os.geteuid() != 0:
        return "a lab needs root"
    try:
        find_binary("nicbench-packets")
    except NotReadyError as error:
        return str(error)
    return None
