"""What a reader of the repository would stumble over: dead links, undocumented targets and keys, a stale lock."""

from __future__ import annotations

import ast
import re
import shlex
import tomllib
from importlib import import_module
from pathlib import Path

import pytest
from tests.commands import run_captured

from nicbench.bench_file.load import parse
from nicbench.cli.commands import demo
from nicbench.cli.main import main
from nicbench.core.shipped import example as example_of

ROOT = Path(__file__).resolve().parents[1]
PAGES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "protocol/README.md", "benchmarks/README.md")
LONGEST_FILE_LINES = 800
SOURCES = (".py", ".rs", ".c", ".h")


def sources(*suffixes: str) -> list[Path]:
    """What people wrote, without what was built."""
    folders = (ROOT / folder for folder in ("src", "engine", "tests", "benchmarks", "scripts"))
    found = (path for folder in folders for path in folder.rglob("*") if path.suffix in suffixes)
    return sorted(path for path in found if path.is_file() and "target" not in path.relative_to(ROOT).parts)


def pages() -> list[Path]:
    return [*(ROOT / page for page in PAGES), *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_of_a_page_leads_to_a_file(page: Path) -> None:
    text = re.sub(r"^```\{.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    links = re.findall(r"\]\(([^)#\s]+)[^)]*\)", text)
    dead = [link for link in links if "://" not in link and not (page.parent / link).exists()]
    assert not dead, f"{page.name} points to {dead}"


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_every_example_that_a_page_names_exists(page: Path) -> None:
    missing = [
        name
        for name in re.findall(r"examples/[\w./-]+\.(?:yaml|ndjson)", page.read_text())
        if not (ROOT / name).exists()
    ]
    assert not missing


def test_every_test_that_the_threat_model_names_exists() -> None:
    named = re.findall(r"`((?:tests|engine)/[\w./]+)`", (ROOT / "docs" / "threat-model.md").read_text())
    assert len(named) > 20
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_the_demo_is_that_of_an_installed_program() -> None:
    assert "nicbench demo" in (ROOT / "Makefile").read_text()
    assert all(example_of(name) == ROOT / "examples" / f"{name}.yaml" for name in (demo.DEMO, demo.SIMULATED))


def test_the_bench_file_of_the_readme_is_valid() -> None:
    blocks = re.findall(r"```yaml\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert blocks
    for block in blocks:
        assert parse(block.encode(), Path("README.md")).tests


def test_make_help_names_every_target() -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z]+):", makefile, re.MULTILINE))
    shown = run_captured(["make", "--no-print-directory", "help"], cwd=ROOT)
    assert targets == set(re.findall(r"^  make (\w+)", shown.stdout, re.MULTILINE))


def test_ci_runs_what_people_run() -> None:
    assert (ROOT / ".ci/run").read_text().rstrip().endswith("make test\nexec make fleet")


PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        (
            "requirements.lock",
            PROJECT["project"]["dependencies"]
            + PROJECT["dependency-groups"]["dev"]
            + PROJECT["build-system"]["requires"],
        ),
        ("requirements.browser.lock", PROJECT["dependency-groups"]["browser"]),
        ("requirements.docs.lock", PROJECT["dependency-groups"]["docs"]),
    ],
)
def test_the_lock_covers_every_dependency_by_hash(name: str, wanted: list[str]) -> None:
    lock = (ROOT / name).read_text()
    entries = re.split(r"\n(?=[a-z0-9])", lock)
    locked = {entry.split("==")[0] for entry in entries}
    names = {
        re.split(r"[<>=!~ ]", requirement)[0].lower().replace(".", "-").replace("_", "-") for requirement in wanted
    }
    assert not names - locked
    assert all("--hash=sha256:" in entry for entry in entries)
    assert "://" not in lock


def test_what_drives_a_browser_is_installed_for_the_checks_alone() -> None:
    assert "playwright" not in (ROOT / "requirements.lock").read_text()
    targets = dict(re.findall(r"^(\w+):.*\n((?:\t.*\n)*)", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert targets["install"] == "\t@scripts/setup\n"
    assert "requirements.browser.lock" in (ROOT / "scripts/setup").read_text()


def test_every_debian_package_has_a_kind_and_a_reason() -> None:
    lines = [line for line in (ROOT / "packages.debian").read_text().splitlines() if line and not line.startswith("#")]
    wrong = [
        line
        for line in lines
        if not re.fullmatch(r"[a-z0-9][a-z0-9+.-]+ *# (runtime|build|tools|facts|test|bench|package): \S.*", line)
    ]
    names = [line.split()[0] for line in lines]
    assert not wrong
    assert len(names) == len(set(names))


def test_no_source_file_is_longer_than_a_reader_can_hold() -> None:
    lengths = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in sources(*SOURCES, ".sh")}
    assert len(lengths) > 50
    assert not {name: length for name, length in lengths.items() if length > LONGEST_FILE_LINES}


def test_nothing_is_left_unfinished_in_the_sources() -> None:
    # Put together here, so that this file does not find itself.
    marks = re.compile("|".join(("TO" + "DO", "FIX" + "ME", "XX" + "X:", r"unimplemented" + r"!\(", r"to" + r"do!\(")))
    assert not [str(path.relative_to(ROOT)) for path in sources(*SOURCES) if marks.search(path.read_text())]


def test_every_test_is_a_function_because_pytest_collects_no_classes_here() -> None:
    classes = [str(path) for path in sources(".py") if re.search(r"^class Test\w*[:(]", path.read_text(), re.MULTILINE)]
    assert not [path for path in classes if path.startswith(str(ROOT / "tests"))]


def test_the_commands_of_the_page_on_imports_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(ROOT)
    commands = re.findall(r"^nicbench (import examples/.*)$", (ROOT / "docs/import.md").read_text(), re.MULTILINE)
    assert len(commands) == 2
    for command in commands:
        assert main([*shlex.split(command), "--output", str(tmp_path)]) == 0
    assert len(list(tmp_path.iterdir())) == 1


PACKAGE = ROOT / "src/nicbench"


def test_no_private_module_is_imported_from_another_package() -> None:
    wrong = []
    for path in sorted(PACKAGE.rglob("*.py")):
        package = ".".join(("nicbench", *path.relative_to(PACKAGE).parent.parts))
        text = path.read_text()
        for node in ast.walk(ast.parse(text)) if "import _" in text or "._" in text else ():
            if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith("nicbench"):
                continue
            for name in {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}:
                owner, private, leaf = str(name).partition("._")
                file = PACKAGE.joinpath(*owner.split(".")[1:], f"_{leaf.split('.')[0]}.py")
                if private and file.is_file() and not f"{package}.".startswith(f"{owner}."):
                    wrong.append(f"{path.relative_to(PACKAGE)} imports {name}")
    assert not wrong


def test_what_makes_the_pages_that_are_looked_at_loads() -> None:
    """``scripts/check-pages`` runs in acceptance alone."""
    assert import_module("tests.pages.make").make
