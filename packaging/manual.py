"""Writes manual pages and completions of shells, from the command line itself: ``manual.py FOLDER`` (its usr/share).

click-man reads commands of click; typer has brought its own copy of click along since 0.20, which click-man refuses.
"""

from __future__ import annotations

import gzip
import re
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from os import environ
from pathlib import Path
from typing import Any, Final

import typer
from typer.completion import get_completion_script

from nicbench import __version__
from nicbench.cli.app import make_app

COMPLETIONS: Final = (
    ("bash", "bash-completion/completions/nicbench"),
    ("zsh", "zsh/vendor-completions/_nicbench"),  # Debian's place
    ("zsh", "zsh/site-functions/_nicbench"),  # Fedora's
    ("fish", "fish/vendor_completions.d/nicbench.fish"),
)


DOCUMENTS: Final = Path(__file__).parents[1] / "docs"
MOST_EXAMPLES: Final = 6
FILES: Final = {
    "runs/": "the folder of run folders, in the current folder (\\-\\-runs names another)",
    "/run/nicbench": "leases of this machine, and what runs changed on it and will undo",
    "/var/cache/nicbench, ~/.cache/nicbench": "engines copied to other hosts, kernels of virtual machines",
}


def write_manual(folder: Path) -> None:
    """Writes nicbench.1 and a page for each command, compressed; equal calls write equal bytes."""
    root = typer.main.get_command(make_app())
    pages = {"nicbench": root, **{f"nicbench-{name}": command for name, command in root.commands.items()}}  # type: ignore[attr-defined]
    (folder / "man/man1").mkdir(parents=True, exist_ok=True)
    for name, command in pages.items():
        text = page(name, command, sorted(pages))
        (folder / f"man/man1/{name}.1.gz").write_bytes(gzip.compress(text.encode(), mtime=0))


def page(name: str, command: Any, names: list[str]) -> str:
    """One page in the language of man(7)."""
    made = datetime.fromtimestamp(int(environ.get("SOURCE_DATE_EPOCH", "0")), UTC)
    words = name.replace("nicbench-", "nicbench ")
    context = typer.Context(command, info_name=words)
    described = _plain(command.help or "")
    parts = [
        f'.TH "{name.upper()}" 1 "{made:%Y-%m-%d}" "nicbench {__version__}" "nicbench"',
        f".SH NAME\n{_escape(name)} \\- {_escape(_plain(command.get_short_help_str(limit=200)))}",
        f".SH SYNOPSIS\n.B {_escape(words)}\n{_escape(' '.join(command.collect_usage_pieces(context)))}",
        f".SH DESCRIPTION\n{_escape(described)}",
    ]
    options = [record for one in command.get_params(context) if (record := one.get_help_record(context))]
    if options:
        rows = (f".TP\n\\fB{_escape(option)}\\fR\n{_escape(_plain(what))}" for option, what in options)
        parts.append(".SH OPTIONS\n" + "\n".join(rows))
    statuses = [
        f".TP\n\\fB{status}\\fR\n{_escape(_plain(meaning))}"
        for status, meaning in re.findall(
            r"^\| (\d+) \| ([^|]+) \|", (DOCUMENTS / "commands.md").read_text(), re.MULTILINE
        )
    ]
    parts.append(".SH EXIT STATUS\n" + "\n".join(statuses))
    parts.append(".SH FILES\n" + "\n".join(f".TP\n.I {_escape(path)}\n{what}" for path, what in FILES.items()))
    if shown := [line for line, _ in zip(examples(words), range(MOST_EXAMPLES), strict=False)]:
        parts.append(".SH EXAMPLES\n" + "\n".join(f".nf\n{_escape(line)}\n.fi\n.PP" for line in shown))
    others = ",\n".join(f".BR {_escape(other)} (1)" for other in names if other != name)
    parts.append(f".SH SEE ALSO\n{others.replace(',', ' ,')}")
    return "\n".join(parts) + "\n"


def examples(command: str) -> Iterator[str]:
    """Yields the lines of the documents that call a command, each once."""
    seen = set()
    for page in sorted(DOCUMENTS.rglob("*.md")):
        for line in re.findall(rf"^ *((?:sudo )?{command} [^|`\n]*)$", page.read_text(), re.MULTILINE):
            if line not in seen:
                seen.add(line)
                yield line.rstrip()


def _plain(text: str) -> str:
    return " ".join(text.replace("\b", "").split())


def _escape(text: str) -> str:
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{text}" if text.startswith((".", "'")) else text


def write_completions(folder: Path) -> None:
    """Writes what each shell reads by itself; it asks the program for words, so that it knows names of runs."""
    for shell, place in COMPLETIONS:
        path = folder / place
        path.parent.mkdir(parents=True, exist_ok=True)
        script = get_completion_script(prog_name="nicbench", complete_var="_NICBENCH_COMPLETE", shell=shell)
        path.write_text(script + "\n", encoding="utf-8")


if __name__ == "__main__":
    write_manual(Path(sys.argv[1]))
    write_completions(Path(sys.argv[1]))
