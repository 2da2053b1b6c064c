"""Heat maps: main values over the axes of a study, whatever the order of the results."""

from __future__ import annotations

from nicbench.core.plan import Plan
from nicbench.core.result import Bounded, Result
from nicbench.report.comparison import heat_maps
from nicbench.report.drawing.charts import WIDE
from nicbench.report.drawing.plots import heat_chart

AXES = {"queues": ("1", "2"), "cores": ("1", "4")}


def plan(axes: dict[str, tuple[str, ...]]) -> Plan:
    return Plan(run_id="r", title="t", nicbench_version="0", seed=1, axes=axes)


def result(configuration: str, rate: float | None) -> Result:
    return Result(
        id=f"throughput/64 {configuration}",
        method="throughput",
        configuration=configuration,
        parameters={"frame_bytes": 64, "size": "64"},
        values={"ndr_frames_per_s": Bounded(value=rate, lower=rate, upper=rate)},
    )


RESULTS = [
    result("queues-2_cores-4", 40_000.0),
    result("queues-1_cores-1", 10_000.0),
    result("queues-1_cores-4", None),
    result("queues-2_cores-1", 19_000.0),
]


def test_a_rate_stands_in_the_field_of_its_combination() -> None:
    (found,) = heat_maps(RESULTS, {each.id: "throughput" for each in RESULTS}, plan(AXES))
    assert [(cell.row, cell.column, cell.number) for cell in found.cells] == [
        ("1", "1", 10.0),
        ("1", "4", None),
        ("2", "1", 19.0),
        ("2", "4", 40.0),
    ]
    assert found.title == "NDR [kpps] over queues and cores, with 64-byte frames"
    assert found.is_of_rate
    drawn = heat_chart(found, WIDE)
    assert drawn is not None
    (points,) = drawn["datasets"].values() if "datasets" in drawn else (drawn["layer"][0]["data"]["values"],)
    assert sorted(point["text"] for point in points) == ["10.0", "19.0", "40.0"]


def test_a_third_axis_has_a_map_for_each_of_its_values() -> None:
    axes = {**AXES, "mtu": ("1500", "9000")}
    every = [
        result(f"queues-{queues}_cores-{cores}_mtu-{mtu}", 1000.0 * int(queues))
        for mtu in ("1500", "9000")
        for queues in ("1", "2")
        for cores in ("1", "4")
    ]
    found = heat_maps(every, {}, plan(axes))
    assert [shown.about for shown in found] == ["with 64-byte frames, mtu 1500", "with 64-byte frames, mtu 9000"]


def test_without_axes_there_is_no_map() -> None:
    assert heat_maps(RESULTS, {}, plan({})) == ()
