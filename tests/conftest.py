"""What all tests share: a fresh seed for each session, printed for repeating it, and what labs and machines need."""

from __future__ import annotations

import os
import random
import secrets
from collections.abc import Callable

import pytest
from hypothesis import settings

from nicbench.engine.binary import find_binary
from nicbench.errors import NotReadyError
from nicbench.vm.emulator import find_emulator
from nicbench.vm.kernel import find_kernel

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
    """Without what a marker needs its tests are skipped, with the reason in the closing lines."""
    for marker, why_not in (("lab", _why_no_lab), ("vm", _why_no_vm)):
        marked = [item for item in items if item.get_closest_marker(marker)]
        reason = why_not() if marked else None
        for item in marked if reason is not None else ():
            item.add_marker(pytest.mark.skip(reason=reason))


def _why_no_lab() -> str | None:
    return _what_lacks("a lab", lambda: find_binary("nicbench-packets"))


def _why_no_vm() -> str | None:
    return _what_lacks("a virtual machine", find_kernel, find_emulator)


def _what_lacks(what: str, *finds: Callable[[], object]) -> str | None:
    if os.geteuid() != 0:
        return f"{what} needs root"
    try:
        for find in finds:
            find()
    except NotReadyError as error:
        return str(error)
    return None
