"""What is chosen among figures, how they are divided, and where they stand on an axis."""

from __future__ import annotations

import json
from typing import Any

import pytest

from nicbench.compare.history.figures import Figure, Measure, Told
from nicbench.compare.history.selection import (
    ANY,
    MOST_WORDS,
    Entry,
    axis_of,
    choose,
    divide,
    divided_by,
    parameters_of,
)
from nicbench.core.errors import UsageError
from nicbench.store.listing import RunHeadline

NDR = Told("ndr_frames_per_s", "NDR", "Mpps", True, True)


def measure(test: str = "throughput", told: Told = NDR, **parameters: Any) -> Measure:
    return Measure(test, "throughput", "default", "per port", json.dumps(parameters, sort_keys=True), told)


def entry(of: Measure, number: float = 1.0, *, name: str = "run", **told: Any) -> Entry:
    return Entry(Figure(number, "valid"), RunHeadline(name, f"/runs/{name}", **told), of, 0.0)


def no_settings(_: Entry, __: str) -> None:
    """Settings that nobody knows."""


def test_a_parameter_that_is_not_asked_for_has_its_first_value_or_each() -> None:
    measures = {number: measure(frame_bytes=size) for number, size in enumerate((1518, 64, 512))}
    choice, found = choose(measures, None, None, {}, first=True)
    assert (choice.test, choice.value, choice.given) == ("throughput", "ndr_frames_per_s", {"frame_bytes": "64"})
    assert list(found) == [1]
    assert len(choose(measures, None, None, {}, first=False)[1]) == 3
    assert len(choose(measures, None, None, {"frame_bytes": ANY}, first=True)[1]) == 3
    assert parameters_of(measures.values()) == {"frame_bytes": [64, 512, 1518]}


def test_a_whole_number_of_a_parameter_is_written_as_such_and_asked_for_either_way() -> None:
    measures = {number: measure(load_percent=load) for number, load in enumerate((100.0, 99.5, 10.0))}
    assert choose(measures, None, None, {}, first=True)[0].given == {"load_percent": "10"}
    for said in ("10", "10.0"):
        assert list(choose(measures, None, None, {"load_percent": said}, first=True)[1]) == [2]
    assert list(choose(measures, None, None, {"load_percent": "99.5"}, first=True)[1]) == [1]


def test_the_test_that_was_measured_first_is_shown_first() -> None:
    detail = NDR._replace(value="lost", is_main=False)
    measures = dict(enumerate((measure("probe", detail), measure("throughput"), measure("latency"))))
    assert choose(measures, None, None, {}, first=True)[0].test == "throughput"
    assert choose(measures, "latency", None, {}, first=True)[0].test == "latency"


def test_nothing_measured_is_said_so() -> None:
    with pytest.raises(UsageError, match="no run has ended with a number yet"):
        choose({}, None, None, {}, first=True)


def test_series_are_named_by_what_tells_them_apart() -> None:
    of = measure(frame_bytes=64)
    entries = [
        entry(of, name="a", title="Nightly", cards=("One",)),
        entry(of, name="b", title="Nightly", cards=("Two",)),
        entry(of, name="c", title="Nightly", cards=("Two",)),
    ]
    found = divide(entries, ("title", "card", "firmware"), no_settings)
    assert [(each.name, len(each.entries)) for each in found] == [("Two", 2), ("One", 1)]


def test_words_stand_in_the_order_of_the_numbers_in_them_and_what_is_unknown_last() -> None:
    of = measure()
    kernels = ("6.12.1", "6.9", "", "6.1.90")
    entries = [entry(of, name=str(number), kernels=(each,) if each else ()) for number, each in enumerate(kernels)]
    axis = axis_of("kernel", entries, no_settings, lambda _: None)
    assert axis.words == ("6.1.90", "6.9", "6.12.1", "not known")
    assert axis.places == (2.0, 1.0, 3.0, 0.0)


def test_a_setting_of_numbers_is_an_axis_of_numbers() -> None:
    entries = [entry(measure(), name=name) for name in ("a", "b", "c")]
    rings = {"a": {"rings": "1024"}, "b": {"rings": "256"}, "c": {}}
    axis = axis_of("setting:rings", entries, lambda one, path: rings[one.run.name].get(path), lambda _: None)
    assert (axis.kind, axis.places) == ("number", (1024.0, 256.0, None))


def test_more_words_than_can_stand_side_by_side_are_refused() -> None:
    entries = [entry(measure(), name=str(number), title=f"t{number}") for number in range(MOST_WORDS + 1)]
    with pytest.raises(UsageError, match="too many to stand side by side"):
        axis_of("title", entries, no_settings, lambda _: None)


def test_figures_of_other_points_are_never_of_one_line() -> None:
    points = [(size, load) for size in (64, 1518) for load in (10, 50)]
    entries = [entry(measure(frame_bytes=size, size=str(size), load_percent=load)) for size, load in points]
    size, load = "parameter:frame_bytes", "parameter:load_percent"
    assert divided_by(size, entries) == (load,)
    assert divided_by(load, entries) == (size, "parameter:size")
    assert divided_by("time", entries) == (size, load, "parameter:size")
    assert divided_by("value:load_frames_per_s", entries) == (size, "parameter:size")
