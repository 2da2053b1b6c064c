"""A plug-in of pytest: tests with real packets or virtual machines get a second chance, and the last lines say which.

They measure a machine that others may use at the same time, and may fail through what these do. Every other test fails
at once. Each repeat is listed with its first failure, so that a test that fails often is seen; ``scripts/check`` names
a file in ``NICBENCH_REPEATED_TESTS``, and lists at its own end what all sessions wrote there.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

MARKERS = ("lab", "vm")
LIST_VARIABLE = "NICBENCH_REPEATED_TESTS"


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Has tests repeated once, by pytest-rerunfailures; an environment made before that was pinned has none."""
    if not config.pluginmanager.hasplugin("rerunfailures"):
        return
    for item in items:
        if any(item.get_closest_marker(marker) for marker in MARKERS):
            item.add_marker(pytest.mark.flaky(reruns=1))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Lists the tests that were repeated, how each ended, and the first failure of each in full."""
    repeated: list[pytest.TestReport] = terminalreporter.stats.get("rerun", [])
    if not repeated or hasattr(terminalreporter.config, "workerinput"):
        return  # a worker of xdist has a summary of its own, which nobody sees
    terminalreporter.section("repeated, because they failed at first")
    failed = {report.nodeid for name in ("failed", "error") for report in terminalreporter.stats.get(name, ())}
    lines = [_describe(report, report.nodeid in failed) for report in repeated]
    for report, line in zip(repeated, lines, strict=True):
        terminalreporter.write_line(line)
        terminalreporter.write_line(report.longreprtext)
    terminalreporter.section("repeated")
    for line in lines:
        terminalreporter.write_line(line)
    if LIST_VARIABLE in os.environ:
        with Path(os.environ[LIST_VARIABLE]).open("a", encoding="utf-8") as listing:
            listing.writelines(f"{line}\n" for line in lines)


def _describe(report: pytest.TestReport, failed_again: bool) -> str:
    ending = "failed again" if failed_again else "passed the second time"
    reason = next(_lines_of_error(report), "no reason was given")
    return f"{report.nodeid} {ending}; at first: {reason}"


def _lines_of_error(report: pytest.TestReport) -> Iterator[str]:
    for line in report.longreprtext.splitlines():
        if line.startswith("E "):
            yield line[1:].strip()
