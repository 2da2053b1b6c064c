"""A badge: one figure with its unit and its verdict, as an SVG for a README. The same run gives the same bytes."""

from __future__ import annotations

from typing import BinaryIO, Final

from markupsafe import Markup

from nicbench.compare.history.figures import Figure, FigureReader, Measure, median_figure
from nicbench.compare.history.wording import figure_in_words, measure_in_words
from nicbench.core.errors import UsageError
from nicbench.export.formats.base import ExportFormat
from nicbench.export.source import ExportSource
from nicbench.export.text import replace_controls

_LETTER: Final = 6.6
"""Width of a letter of 11 pixels, about; ``textLength`` makes every font keep to it."""
_MARGIN: Final = 6
_LONGEST: Final = 60
_COLOURS: Final = {"valid": "#1a7f37", "adjusted": "#1a7f37", "imported": "#57606a", "disturbed": "#9a6700"}
_OTHERWISE: Final = "#b42318"
_BADGE: Final = Markup(
    '<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="20" role="img" aria-label="{said}">'
    "<title>{said}</title>"
    '<rect width="{width}" height="20" rx="3" fill="{colour}"/>'
    '<path d="M3 0h{left_flat}v20h-{left_flat}a3 3 0 0 1-3-3v-14a3 3 0 0 1 3-3z" fill="#3c434a"/>'
    '<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">'
    '<text x="{margin}" y="14" textLength="{label_width}">{label}</text>'
    '<text x="{value_at}" y="14" textLength="{value_width}">{value}</text></g></svg>\n'
)


class BadgeFormat(ExportFormat):
    """The first main value of a run: of several runs the median, of several configurations that of the first."""

    kind = "badge"
    suffix = ".svg"

    def write(self, source: ExportSource, table: str, stream: BinaryIO) -> None:
        found: dict[Measure, list[Figure]] = {}
        for _, measure, figure in FigureReader().figures_of(source.folder):
            if measure.told.is_main:
                found.setdefault(measure, []).append(figure)
        plan = source.folder.plan()
        compared = plan.compared if plan is not None else ()
        of_first = (measure for measure in found if measure.configuration in compared[:1])
        main = next(of_first, next(iter(found), None))
        if main is None:
            raise UsageError(
                "has no main value that a badge could show", place=source.folder.run_id, next_step="finish the run"
            )
        stream.write(badge_of(main, median_figure(found[main])).encode())


def badge_of(measure: Measure, figure: Figure) -> str:
    """Returns the badge of a figure: what was measured, its value, and its verdict where it is not simply valid."""
    value = figure_in_words(measure.told, figure)
    return badge(measure_in_words(measure), value, figure.verdict)


def badge(label: str, value: str, verdict: str) -> str:
    """Returns a badge as SVG with a title; its colour and its words say the verdict."""
    shown = value if verdict in ("valid", "adjusted") else f"{value} ({verdict})"
    label, shown = (_short(text) for text in (label, shown))
    label_width, value_width = (round(_LETTER * len(text)) for text in (label, shown))
    left = label_width + 2 * _MARGIN
    return str(
        _BADGE.format(
            width=left + value_width + 2 * _MARGIN,
            said=f"{label}: {_short(value)}, {verdict}",
            colour=_COLOURS.get(verdict, _OTHERWISE),
            left_flat=left - 3,
            margin=_MARGIN,
            label_width=label_width,
            label=label,
            value_at=left + _MARGIN,
            value_width=value_width,
            value=shown,
        )
    )


def _short(text: str) -> str:
    clean = " ".join(replace_controls(text).split())
    return clean if len(clean) <= _LONGEST else f"{clean[: _LONGEST - 1]}…"
