"""What docs/workloads.md says of each tool; its options are compared by tests/test_documented_options.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from nicbench.core.shipped import shipped
from nicbench.doctor.checks.software import parse_packages
from nicbench.workloads.play import kinds

PAGE = (Path(__file__).resolve().parents[2] / "docs/workloads.md").read_text()
NOT_IN_DEBIAN = {"netperf"}


@pytest.mark.parametrize("kind", kinds())
def test_the_page_names_each_tool_in_its_table_and_in_a_section(kind: str) -> None:
    assert f"\n## `{kind}`\n" in PAGE
    assert f"| `{kind}` |" in PAGE


def test_the_packages_of_all_tools_are_listed() -> None:
    listed = {
        package.name
        for package in parse_packages(shipped("packages.debian").read_text())
        if package.needed_for == "tools"
    }
    installed = {name: kind for name, kind in kinds().items() if not kind.is_ours and name not in NOT_IN_DEBIAN}
    assert {kind.package for kind in installed.values()} <= listed
