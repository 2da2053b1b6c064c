"""What the views share: the folder of runs, what is known of them, and the frame of a page."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Final

from markupsafe import Markup
from starlette.responses import HTMLResponse
from starlette.routing import BaseRoute

from nicbench.core.errors import NicbenchError, UsageError
from nicbench.core.frozen import frozen
from nicbench.core.redaction import make_visible
from nicbench.lake.place import Lake
from nicbench.store.folder import is_run_folder
from nicbench.web.catalogue import Catalogue
from nicbench.web.history import History
from nicbench.web.security import Door
from nicbench.web.watched_run import WatchedRuns

_PAGE: Final = Markup("""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="nicbench-token" content="{token}">
<title>{title}</title>
<link rel="icon" href="/static/icon.svg">
<link rel="stylesheet" href="/static/report.css">
<link rel="stylesheet" href="/static/vendor/uplot/uPlot.min.css">
<link rel="stylesheet" href="/static/web.css">
{scripts}</head>
<body>
<a class="skip" href="#main">To the content</a>
<header class="bar"><b>nicbench</b><nav aria-label="Views">{links}</nav><span id="link" role="status"></span></header>
<main id="main" tabindex="-1" {about}>{content}</main>
</body>
</html>
""")
_SCRIPTS: Final = Markup("""<script src="/static/vendor/uplot/uPlot.iife.min.js" defer></script>
<script type="module" src="/static/views/{script}.js"></script>
""")
_WITHOUT: Final = Markup("<noscript><p>This page needs JavaScript.</p></noscript>")
_LINK: Final = Markup('<a href="{path}">{text}</a>')
_HERE: Final = Markup('<a href="{path}" aria-current="page">{text}</a>')
_ABOUT: Final = Markup('data-{name}="{value}"')
_REFUSAL: Final = Markup("""<h1>This cannot be shown</h1>
<p>{said}</p>
<ul>{listed}</ul>
{step}<p><a href="/">All runs</a></p>""")
_ITEM: Final = Markup("<li>{}</li>")
_STEP: Final = Markup("<p><b>What to do:</b> {}</p>\n")
_CODE: Final = Markup("<code>{}</code>")


@frozen
class Link:
    """An entry of the navigation."""

    path: str
    text: str


@dataclass(slots=True)
class Site:
    """One server's: its ``folder`` of runs, its ``door``, and the ``links`` of its views."""

    folder: Path
    catalogue: Catalogue
    door: Door
    lake: Lake | None = None
    watched: WatchedRuns = field(default_factory=WatchedRuns)
    links: Sequence[Link] = ()
    ends_with_run: bool = False
    """Whether the server belongs to one run and is gone with it."""
    ending: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the server is to end: streams say their last."""
    streams: int = 0
    history: History = field(init=False)

    def __post_init__(self) -> None:
        self.history = History(self.folder, self.catalogue, self.lake)

    def run_folder(self, run_id: str) -> Path:
        """Returns the folder of a run, in the folder of runs or, by the lake, below it. UsageError if it does not
        exist.

        A link that leads elsewhere does not count: whoever may write here could show any folder by it.
        """
        path = self.folder / run_id
        if "/" in run_id or run_id.startswith(".") or "\0" in run_id:
            raise UsageError("there is no such run", place=make_visible(run_id[:200]))
        if path.is_symlink() or not is_run_folder(path):
            path = self._gathered(run_id)
        return path

    def _gathered(self, run_id: str) -> Path:
        found = None
        if self.lake is not None:
            from nicbench.lake.searching import find_run  # imported here: pages without a lake load none of it

            found = find_run(self.lake, run_id)
        if found is None:
            raise UsageError("there is no such run", place=make_visible(run_id[:200]))
        path = found.path
        if path.name != run_id or not path.resolve().is_relative_to(self.folder) or not is_run_folder(path):
            raise UsageError(
                f"the folder of this run was {make_visible(found.folder)}: there is none below {self.folder}",
                place=make_visible(run_id[:200]),
                next_step="serve a folder above it, as the files of other folders are not shown",
            )
        return path

    def page(self, title: str, script: str, *, here: str | None = None, **about: str) -> HTMLResponse:
        """Makes a page, which its ``script`` fills; ``about`` is the data for the script, ``here`` the current link."""
        told = Markup(" ").join(_ABOUT.format(name=name, value=value) for name, value in about.items())
        return HTMLResponse(self._frame(title, _WITHOUT, _SCRIPTS.format(script=script), here=here, about=told))

    def refusal(self, error: NicbenchError, status: int, headers: Mapping[str, str] | None) -> HTMLResponse:
        """Makes the page of what cannot be shown: why, what to do, and the way back."""
        said, *reasons = make_visible(error.message).split("\n")
        place = f"{make_visible(error.place)}: " if error.place else ""
        listed = Markup("").join(_ITEM.format(_with_code(reason.strip().removeprefix("- "))) for reason in reasons)
        step = _STEP.format(_with_code(make_visible(error.next_step))) if error.next_step else ""
        text = f"{place}{said}" if place else said[:1].upper() + said[1:]
        content = _REFUSAL.format(said=_with_code(text), listed=listed, step=step)
        return HTMLResponse(self._frame("Not shown", content), status, headers)

    def _frame(
        self, title: str, content: Markup, scripts: Markup | None = None, *, here: str | None = None, about: str = ""
    ) -> str:
        links = Markup("").join(
            (_HERE if link.path == here else _LINK).format(path=link.path, text=link.text) for link in self.links
        )
        return _PAGE.format(
            token=self.door.token,
            title=make_visible(title),
            scripts=scripts or "",
            links=links,
            about=about,
            content=content,
        )


def _with_code(text: str) -> Markup:
    """A text in which what stands between backticks is code."""
    parts = text.split("`")
    return Markup("").join(_CODE.format(part) if place % 2 else part for place, part in enumerate(parts))


class View(ABC):
    """One view. ``kind`` is the name of its script; ``link`` its entry in the navigation, with its place in it."""

    kind: ClassVar[str]
    link: ClassVar[Link | None] = None
    place: ClassVar[int] = 0

    def __init__(self, site: Site) -> None:
        self.site = site

    @abstractmethod
    def routes(self) -> Sequence[BaseRoute]:
        """Returns its addresses."""
