"""The option ``--format`` of commands that write a page: HTML, PDF, Markdown, or all of them."""

from __future__ import annotations

from typing import Annotated

import typer

from nicbench.errors import UsageError
from nicbench.report import Format

_ALL = "all"

Formats = Annotated[
    list[str] | None,
    typer.Option(
        "--format",
        metavar="FORMAT",
        help="html, pdf, md or all; several by commas, or by the option again.",
        show_default=Format.HTML.value,
    ),
]


def kinds(texts: list[str] | None) -> tuple[Format, ...]:
    """Each once, in the order asked for; UsageError where one is not known."""
    names = [name.strip() for text in texts or [Format.HTML.value] for name in text.split(",")]
    known = {kind.value for kind in Format}
    for name in names:
        if name not in known | {_ALL}:
            raise UsageError(
                f"there is no format {name!r}",
                place="--format",
                next_step=f"one of {', '.join([*sorted(known), _ALL])}",
            )
    return tuple(Format) if _ALL in names else tuple(Format(name) for name in dict.fromkeys(names))
