"""A link that a test pulled, in the report: what each connection did, and what the clients moved meanwhile."""

from __future__ import annotations

from collections.abc import Sequence

from nicbench.core.bond import Connection, FlowSilence, LinkFailure, LinkFailureOutcome
from nicbench.core.judging import Verdict
from nicbench.core.round import Figures, Job, JobOutcome, JobSpec, Round, RoundRequest
from nicbench.report.bonds import list_failed_links
from nicbench.report.drawing.charts import NARROW, WIDE
from nicbench.report.drawing.over_time import failed_link_chart
from nicbench.report.numbers import UNKNOWN

ASKED = LinkFailure(port="s0", link=2, after=4.0, lasts=4.0)


def connection(port: int) -> Connection:
    return Connection(source="198.18.0.1", source_port=5201, destination="198.18.0.10", destination_port=port)


def silence(job: int, *, went_on: bool = True, down_s: float = 0.3) -> FlowSilence:
    return FlowSilence(
        jobs=(job,),
        connection=connection(40_000 + job),
        port_before="s0p2",
        port_down="s0p1" if went_on else None,
        silent_down_s=down_s,
        silent_back_s=0.1,
        went_on=went_on,
    )


def pulled(flows: Sequence[FlowSilence], *, down_at_s: float | None = 4.0) -> Round:
    jobs = tuple(Job(workload="iperf3", client=name, server="s0", ask=JobSpec(), port=5201) for name in ("c0a", "c0b"))
    moved = Figures(intervals=tuple((float(second), 5e6) for second in range(1, 13)))
    failed = LinkFailureOutcome(
        asked=ASKED, link="s0p2", taken_down="s0p2", down_at_s=down_at_s, up_at_s=8.0, step_s=0.2, flows=tuple(flows)
    )
    return Round(
        id="r0001",
        key="k",
        test="t",
        configuration="default",
        parameters={},
        repeat=0,
        request=RoundRequest(jobs=jobs, duration_s=12.0, failure=ASKED),
        outcomes=(JobOutcome(figures=moved, began_s=0.0), JobOutcome(figures=moved, began_s=0.5)),
        failure=failed,
        verdict=Verdict(),
    )


def test_connections_of_a_client_that_did_the_same_are_one_row() -> None:
    (failed,) = list_failed_links([pulled([silence(1), silence(1), silence(2, went_on=False)])], {"r0001"})
    assert [(row.who, row.connections, row.silent_down, row.silent_back, row.went_on) for row in failed.rows] == [
        ("c0a", 2, "0.3", "≤ 0.2", True),
        ("c0b", 1, UNKNOWN, UNKNOWN, False),
    ]
    assert "1 of 3 connections stood still from then on" in failed.sentence


def test_where_every_connection_went_on_the_longest_silence_is_told() -> None:
    (failed,) = list_failed_links([pulled([silence(1), silence(2, down_s=1.25)])], {"r0001"})
    assert failed.sentence.endswith("from 4.0 s to 8.0 s: all 2 connections went on, silent for 1.2 s.")


def test_the_time_in_which_the_link_was_down_is_shaded_behind_what_moved() -> None:
    (failed,) = list_failed_links([pulled([silence(1)])], {"r0001"})
    for form in (WIDE, NARROW):
        drawn = failed_link_chart(failed, form)
        assert drawn is not None
        values = [drawn["datasets"][layer["data"]["name"]] for layer in drawn["layer"]]
        assert {"from": 4.0, "to": 8.0, "what": "link down"} in values[0]
        assert {point["line"] for point in values[-1]} == {"c0a", "c0b"}
        assert max(point["t"] for point in values[-1]) == 12.5


def test_rounds_without_a_result_and_links_that_stayed_up_are_left_out() -> None:
    assert list_failed_links([pulled([silence(1)])], set()) == ()
    assert list_failed_links([pulled([], down_at_s=None)], {"r0001"}) == ()
