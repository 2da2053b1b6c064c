"""The template of a method in CONTRIBUTING works as it stands: its rate is the DUT's, with its column in the report."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from nicbench.core.reading import Counts
from nicbench.core.trial import Reading, StreamReading, TrialRequest
from nicbench.methods.base import FrameMethod
from nicbench.report.section import Section
from nicbench.report.tables import sections

from .known import LINE, KnownContext, reading_of, run

CONTRIBUTING = Path(__file__).parents[2] / "CONTRIBUTING.md"


class HalfOfEverything(KnownContext):
    """Its DUT forwards every other frame."""

    def read(self, point: dict[str, Any], request: TrialRequest) -> Reading:
        assert request.load_frames_per_s is not None
        sent = int(request.load_frames_per_s * request.duration_s)
        counts = Counts(intended=sent, sent=sent, received=sent // 2, lost=sent - sent // 2)
        return reading_of(request.duration_s, [StreamReading(name="0->1 a", counts=counts)])


@pytest.fixture
def template(monkeypatch: pytest.MonkeyPatch) -> type[FrameMethod]:
    text = CONTRIBUTING.read_text(encoding="utf-8")
    code = text.partition("## Adding a method")[2].partition("```python\n")[2].partition("```")[0]
    module = ModuleType("nicbench.methods.name_of_the_method")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(compile(code, str(CONTRIBUTING), "exec"), vars(module))
    method: type[FrameMethod] = vars(module)["NameOfTheMethod"]
    return method


async def test_the_template_measures_and_has_its_column_in_the_report(
    template: type[FrameMethod], monkeypatch: pytest.MonkeyPatch
) -> None:
    template.check()
    method = template("new", template.Options(frame_bytes=(64,)))
    (result,) = await run(method, HalfOfEverything())
    assert result.values["forwarding_rate_frames_per_s"] == pytest.approx(0.5 * LINE, rel=1e-4)
    assert "RFC 0000" in template.procedure()
    monkeypatch.setattr("nicbench.report.tables.find", lambda package, base: {template.kind: template})
    found: tuple[Section, ...] = sections([result], {})
    (section,) = found
    assert (section.table.columns[1].unit, section.rows[0].cells) == ("kpps", ("64", "744"))
    assert section.sentence == "forwards 744\u00a0kpps of 64-byte frames"
