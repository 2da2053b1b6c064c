"""Two runs side by side: the page that `nicbench compare` makes, made when it is asked for."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import BaseRoute, Route

from nicbench.core.errors import UsageError
from nicbench.web.security import SANDBOX
from nicbench.web.views.base import View


class CompareView(View):
    """The comparison of the runs that the address names."""

    kind = "compare"
    place = 2

    def routes(self) -> Sequence[BaseRoute]:
        return (Route("/compare", self._page),)

    async def _page(self, request: Request) -> Response:
        runs = request.query_params.getlist("run")
        if len(runs) != 2:
            raise UsageError("two runs are compared", place="run", next_step="select two in the list of runs")
        try:
            text = await run_in_threadpool(_compare, [self.site.run_folder(run) for run in runs])
        except UsageError as error:  # its next step is for the command line
            step = error.next_step or ""
            for option in ("--force", "--per-port"):
                step = step.replace(option, f"`{shlex.join(['nicbench', 'compare', *runs, option])}`")
            raise UsageError(error.message, place=error.place, next_step=step or None) from error
        return HTMLResponse(text, headers={"Content-Security-Policy": SANDBOX})


def _compare(folders: Sequence[Path]) -> str:
    from nicbench.report.beside.layout import document  # imported here, as charts take a second to load
    from nicbench.report.beside.making import compare
    from nicbench.report.html import write_html

    command = shlex.join(["nicbench", "compare", *(str(folder) for folder in folders)])
    made = compare([str(folder) for folder in folders], folders[0].parent, lambda _: [], command=command)
    return write_html(document(made.page))
