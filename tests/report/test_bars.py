"""Bars: as many as there are values, each with a look of its own, and none upon another."""

from __future__ import annotations

from nicbench.core.result import Result, ResultVerdict
from nicbench.report.drawing.charts import WIDE, bar_colours
from nicbench.report.drawing.plots import bars_chart
from nicbench.report.drawing.svg import SERIES
from nicbench.report.tables import side_by_side


def stream(configuration: str, client: str, bits_per_s: float) -> Result:
    return Result(
        id=f"{configuration}/{client}",
        test="streams",
        method="stream",
        configuration=configuration,
        parameters={"mode": "TCP to the server", "part": "clients", "client": client, "beside": "each port alone"},
        values={"throughput_bits_per_s": bits_per_s},
        verdict=ResultVerdict.VALID,
        trials=(),
    )


def test_bars_of_configurations_stand_beside_each_other() -> None:
    results = [stream(name, "c0", rate) for name, rate in (("port", 82e6), ("function", 143e6))]
    (section,) = side_by_side(results, {result.id: "streams" for result in results})
    drawn = bars_chart(section, WIDE)
    assert drawn is not None
    (points,) = drawn["datasets"].values()
    assert sorted((point["line"].rpartition(", ")[2], round(point["y"], 3)) for point in points) == [
        ("function", 0.143),
        ("port", 0.082),
    ]


def test_more_bars_than_colours_are_told_apart_by_strength() -> None:
    names = [str(number) for number in range(2 * len(SERIES))]
    looks = bar_colours("line", names, None)
    colours, strengths = (looks[channel].to_dict()["scale"]["range"] for channel in ("color", "opacity"))
    assert len(set(zip(colours, strengths, strict=True))) == len(names)
    assert "opacity" not in bar_colours("line", names[: len(SERIES)], None)
