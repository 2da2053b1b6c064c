"""Every kind that a bench file can name has a section of its own in the documentation, which names each of its options.

An option that several kinds share may stand at the beginning of the section that theirs are parts of (`DUTs in user
space`, `search`); the keys of an option that has keys of its own (`trial`) may have a section of that name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from nicbench.core.registry import find
from nicbench.hosts.base import Host
from nicbench.methods.base import Method
from nicbench.search.base import Search
from nicbench.testbed.duts.base import Dut
from nicbench.testbed.labs.base import Lab
from nicbench.testbed.shares.base import ShareKind
from nicbench.testbed.testers.base import TesterKind

DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGES = ("bench-file.md", "streams.md", "vm.md")
# By package: what its kinds derive from, and the headings under which their sections are.
FAMILIES: dict[str, tuple[type[Any], tuple[str, ...]]] = {
    "methods": (Method, ("`tests`", "Methods")),
    "testbed.duts": (Dut, ("`dut`",)),
    "testbed.labs": (Lab, ("`lab`",)),
    "hosts.kinds": (Host, ("Hosts, ports and links", "The lab in a virtual machine")),
    "search": (Search, ("`search`",)),
    "testbed.shares": (ShareKind, ("`file-server`",)),
    "testbed.testers": (TesterKind, ("`tester`",)),
}


@dataclass(frozen=True)
class Section:
    """A heading and the text below it, up to the next heading."""

    headings: tuple[str, ...]  # from the page's own down to this one
    text: str

    def names(self, word: str) -> bool:
        return f"`{word}`" in self.text


def sections_of(page: str) -> list[Section]:
    """The sections of a page, in their order; what looks like a heading within a block of code is none."""
    text = re.sub(r"^```.*?^```$", "", page, flags=re.MULTILINE | re.DOTALL)
    sections: list[Section] = []
    path: tuple[str, ...] = ()
    for hashes, heading, body in re.findall(r"^(#+) (.+)\n((?:(?!#+ ).*\n?)*)", text, re.MULTILINE):
        path = (*path[: len(hashes) - 1], heading)
        sections.append(Section(path, body))
    return sections


SECTIONS = [section for page in PAGES for section in sections_of((DOCS / page).read_text())]
KINDS = [
    (package, kind, plugin.Options)
    for package, (base, _) in FAMILIES.items()
    for kind, plugin in find(f"nicbench.{package}", base).items()
]


def sections_that_name(package: str, kind: str) -> list[Section]:
    """The sections of a kind: its heading, and the parts of that section."""
    parents = FAMILIES[package][1]
    return [
        section
        for section in SECTIONS
        for level, heading in enumerate(section.headings)
        if f"`{kind}`" in heading and set(section.headings[:level]) & set(parents)
    ]


def shared_with(sections: list[Section], package: str) -> list[Section]:
    """What stands before them in the section that they are parts of, unless that is all that there is of the family."""
    if package == "search":
        return [section for section in SECTIONS if section.headings[-1] == "`search`"]
    above = {section.headings[:-1] for section in sections} - {section.headings for section in sections}
    parents = FAMILIES[package][1]
    return [section for section in SECTIONS if section.headings in above and section.headings[-1] not in parents]


@pytest.mark.parametrize(("package", "kind", "options"), KINDS, ids=[f"{package}/{kind}" for package, kind, _ in KINDS])
def test_every_option_of_a_kind_stands_in_its_own_section(package: str, kind: str, options: type[BaseModel]) -> None:
    own = sections_that_name(package, kind)
    assert own, f"no section of {' or '.join(PAGES)} under {FAMILIES[package][1]} has `{kind}` in its heading"
    shared = shared_with(own, package)
    missing = [name for name in options.model_fields if not any(section.names(name) for section in [*own, *shared])]
    for name, field in options.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            places = [*own, *shared, *(section for section in SECTIONS if section.headings[-1] == f"`{name}`")]
            keys = set(field.annotation.model_fields) - {"kind"}
            missing += [f"{name}.{key}" for key in keys if not any(section.names(key) for section in places)]
    assert not missing, f"the section of `{kind}` does not name {missing}"


def test_a_section_ends_where_the_next_one_begins() -> None:
    page = "# Page\nno `a`\n## `lab`\n```yaml\n# no heading\n```\n### `veth`\n| `a` |\n\n| `b` |\n### `memif`\n`c`\n"
    found = {section.headings: section.text for section in sections_of(page)}
    assert list(found) == [
        ("Page",),
        ("Page", "`lab`"),
        ("Page", "`lab`", "`veth`"),
        ("Page", "`lab`", "`memif`"),
    ]
    assert found["Page", "`lab`", "`veth`"] == "| `a` |\n\n| `b` |\n"
