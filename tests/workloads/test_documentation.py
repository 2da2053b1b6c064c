"""What docs/workloads.md says: each tool, and each of its options."""

from __future__ import annotations

from pathlib import Path

import pytest

from nicbench.core.shipped import shipped
from nicbench.doctor.checks.packages import parse_packages
from nicbench.workloads.play import kinds

PAGE = (Path(__file__).resolve().parents[2] / "docs/workloads.md").read_text()
NOT_IN_DEBIAN = {"netperf"}


@pytest.mark.parametrize("kind", kinds())
def test_the_page_names_each_tool_and_all_of_its_options(kind: str) -> None:
    section = PAGE.partition(f"\n## `{kind}`\n")[2].partition("\n## ")[0]
    assert section
    assert f"| `{kind}` |" in PAGE
    missing = [name for name in kinds()[kind].Options.model_fields if f"| `{name}` |" not in section]
    assert not missing


def test_the_packages_of_all_tools_are_listed() -> None:
    listed = {
        package.name
        for package in parse_packages(shipped("packages.debian").read_text())
        if package.needed_for == "tools"
    }
    installed = {name: kind for name, kind in kinds().items() if not kind.is_ours and name not in NOT_IN_DEBIAN}
    assert {kind.package for kind in installed.values()} <= listed
