"""A plug-in of pytest: where only tests with real packets or virtual machines fail, their failures are handed on.

Such tests measure a machine that others use at the same time, not least the tests beside them, and may fail through
what these do. ``scripts/check`` names a file in ``NICBENCH_REPEATED_TESTS`` and repeats, one at a time, the tests that
a session lists there; they count as failed when they fail again. More than a few failures are no noise, and where a
test of another kind failed too, the session has failed anyway. Without that variable each failure counts at once.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

MARKERS = ("lab", "vm")
MOST = 10
LIST_VARIABLE = "NICBENCH_REPEATED_TESTS"
PROPERTY = ("measures a shared machine", True)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Notes in the reports of tests, which workers of xdist hand on, whether they are of labs or machines."""
    for item in items:
        if any(item.get_closest_marker(marker) for marker in MARKERS):
            item.user_properties.append(PROPERTY)


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Lists the failed tests of labs and machines with their first failure, and has the session end well."""
    listing = os.environ.get(LIST_VARIABLE)
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if hasattr(session.config, "workerinput"):
        return  # a worker of xdist sees some of the tests only
    if not listing or reporter is None or session.exitstatus != pytest.ExitCode.TESTS_FAILED:
        return
    failed = [report for outcome in ("failed", "error") for report in reporter.stats.get(outcome, ())]
    if not failed or not all(PROPERTY in getattr(report, "user_properties", ()) for report in failed):
        return
    lines = {_describe(report) for report in failed}
    if len(lines) > MOST:
        return
    with Path(listing).open("a", encoding="utf-8") as stream:
        stream.writelines(f"{line}\n" for line in sorted(lines))
    session.exitstatus = pytest.ExitCode.OK


def _describe(report: pytest.TestReport) -> str:
    return f"{report.nodeid}: {next(_lines_of_error(report), 'no reason was given')}"


def _lines_of_error(report: pytest.TestReport) -> Iterator[str]:
    for line in report.longreprtext.splitlines():
        if line.startswith("E "):
            yield line[1:].strip()
