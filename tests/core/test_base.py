"""Tests of the frozen models: a copy with other values refuses a name that is not a field."""

from __future__ import annotations

import pytest

from nicbench.core.base import Choice
from nicbench.core.result import NearLimit

LIMIT = NearLimit(value="rate", limit="ceiling", text="close")


def test_a_copy_has_the_other_values_and_the_original_keeps_its_own() -> None:
    assert LIMIT.replace(text="closer") == NearLimit(value="rate", limit="ceiling", text="closer")
    assert LIMIT.text == "close"


def test_a_copy_refuses_a_name_that_is_not_a_field() -> None:
    with pytest.raises(TypeError, match="NearLimit has no field txt"):
        LIMIT.replace(txt="closer")


def test_the_choice_of_a_plug_in_takes_options_of_any_name() -> None:
    assert Choice(kind="iperf3").replace(streams=4).options == {"streams": 4}
