"""Methods of connections on clients and servers of known limits: the limit is found, and what went wrong is shown."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from nicbench.core.connections import (
    ConnectionCounts,
    ConnectionFigures,
    ConnectionsSpec,
    ConnectionTable,
    Segments,
)
from nicbench.core.reading import Times
from nicbench.core.result import Bounded, LimitedBy, Result, ResultVerdict
from nicbench.core.round import Figures, Job, JobOutcome, RoundRequest
from nicbench.methods.base import RoundMethod
from nicbench.methods.connections import ConcurrentConnections, ConnectionsPerSecond, HttpLatency, HttpTransactions
from nicbench.report.tables import sections
from nicbench.stats.latency import histogram_of

from .round_contexts import Laboratory

LATE_NS = 500_000_000


def counted(due: int, failed: dict[str, int], *, in_time: int | None = None, late: bool = False) -> JobOutcome:
    completed = due - sum(failed.values())
    figures = ConnectionFigures(
        wall_ns=10**9,
        ramp=ConnectionCounts(due=0, completed=0),
        sustain=ConnectionCounts(due=due, completed=completed, failed=failed),
        in_time=completed if in_time is None else in_time,
        bytes=1000 * completed,
        lateness_p99_ns=LATE_NS if late else 0,
        opened=due,
        reopened=0,
        most_open=due,
        held=completed,
        cpu_ns=10**8,
        busiest_thread_ns=10**8,
    )
    return JobOutcome(figures=Figures(connections=figures), began_s=0.0, took_s=1.0)


def asked(job: Job) -> ConnectionsSpec:
    assert job.ask.connections is not None
    return job.ask.connections


def measured(method: RoundMethod, laboratory: Laboratory) -> Result:
    (result,) = asyncio.run(method.run(laboratory.context))
    return result


def cps(**options: Any) -> ConnectionsPerSecond:
    options = {"maximum": 10_000, "duration": 1.0, "precision": 0.01, "loss_verification": 0, **options}
    return ConnectionsPerSecond("cps", ConnectionsPerSecond.Options.model_validate(options))


def test_the_greatest_rate_without_failures_is_found_and_what_fails_above_it_is_told() -> None:
    def bears(_: int, job: Job) -> JobOutcome:
        rate = int(asked(job).rate_per_s)
        return counted(rate, {"connect_timeout": rate - 1234} if rate > 1234 else {})

    result = measured(cps(), Laboratory(bears))
    found = result.values["connections_per_s"]
    assert isinstance(found, Bounded)
    assert found.lower is not None
    assert found.upper is not None
    assert found.lower <= 1234 < found.upper <= found.lower * 1.01 + 1
    assert found.limited_by is LimitedBy.DUT
    assert "not connected in time" in str(result.values["limit"])
    (section,) = sections([result], {})
    assert section.table.title == "Connections per second"


def test_one_failure_in_a_hundred_thousand_is_allowed_and_two_are_not() -> None:
    for failures, expected in ((1, 10_000), (2, None)):
        laboratory = Laboratory(lambda _, job, failures=failures: counted(100_000, {"reset": failures}))
        found = measured(cps(duration=10.0), laboratory).values["connections_per_s"]
        assert found.value == expected


def test_what_piles_up_is_no_rate_although_nothing_fails() -> None:
    def slow(_: int, job: Job) -> JobOutcome:
        rate = int(asked(job).rate_per_s)
        return counted(rate, {}, in_time=min(rate, 500))

    result = measured(cps(), Laboratory(slow))
    found = result.values["connections_per_s"]
    assert found.value is not None
    assert 495 <= found.value <= 506
    assert "complete in time" in str(result.values["limit"])


def test_a_late_client_is_the_limit_and_not_the_dut() -> None:
    def late(_: int, job: Job) -> JobOutcome:
        rate = int(asked(job).rate_per_s)
        return counted(rate, {}, in_time=min(rate, 700), late=rate > 700)

    result = measured(cps(), Laboratory(late))
    found = result.values["connections_per_s"]
    assert (found.value, found.upper, found.limited_by) == (700, None, LimitedBy.TESTER)
    assert result.values["limited_by"] == "client"
    assert "driver: xdp" in str(result.values["limit"])
    assert "driver: xdp" not in str(measured(cps(driver="xdp"), Laboratory(late)).values["limit"])


@pytest.mark.parametrize("beside", [{}, {"reset": 1}, {"reset": 3}, {"connect_timeout": 300}])
def test_a_client_without_ports_is_the_limit_whatever_failures_there_are_beside(beside: dict[str, int]) -> None:
    def short_of_ports(_: int, job: Job) -> JobOutcome:
        rate = int(asked(job).rate_per_s)
        return counted(200_000, {"no_ports": 1333, **beside} if rate > 9_000 else {})

    result = measured(cps(duration=10.0), Laboratory(short_of_ports))
    found = result.values["connections_per_s"]
    assert isinstance(found, Bounded)
    assert found.limited_by is LimitedBy.TESTER
    assert "no local port was free" in str(result.values["limit"])
    assert "is late" not in str(result.values["limit"])


@pytest.mark.parametrize("late", [0, 5])
def test_what_fails_on_time_is_the_duts_whatever_fails_when_the_client_had_been_away(late: int) -> None:
    def refuses(_: int, job: Job) -> JobOutcome:
        rate = int(asked(job).rate_per_s)
        return counted(rate, {"refused": rate - 700, "late": late} if rate > 700 else {})

    found = measured(cps(), Laboratory(refuses)).values["connections_per_s"]
    assert (found.value, found.limited_by) == (found.lower, LimitedBy.DUT)
    assert found.lower <= 700 < found.upper


def test_a_trial_in_which_the_client_had_been_away_is_repeated() -> None:
    trials = []

    def upset_once(_: int, job: Job) -> JobOutcome:
        rate = int(asked(job).rate_per_s)
        trials.append(rate)
        return counted(rate, {"late": 50} if len(trials) == 1 else {})

    found = measured(cps(loss_verification=1), Laboratory(upset_once)).values["connections_per_s"]
    assert (trials, found.value) == ([10_000, 10_000], 10_000)


def test_what_a_trial_held_guides_the_next_one() -> None:
    def holds(_: int, job: Job) -> JobOutcome:
        due = asked(job).connections
        return counted(due, {"connect_timeout": due - 1234} if due > 1234 else {})

    options = {"maximum": 1_000_000, "duration": 1.0, "precision": 0.0, "loss_verification": 0}
    laboratory = Laboratory(holds)
    method = ConcurrentConnections("held", ConcurrentConnections.Options.model_validate(options))
    found = measured(method, laboratory).values["concurrent_connections"]
    assert isinstance(found, Bounded)
    assert (found.lower, found.upper) == (1234, 1235)
    numbers = [sum(asked(job).connections for job in request.jobs) for request in laboratory.requests]
    assert numbers == [1_000_000, 1234, 1235]


def test_a_dut_that_always_loses_one_more_is_searched_by_halves() -> None:
    def loses_one(_: int, job: Job) -> JobOutcome:
        return counted(asked(job).connections, {"reset": 1})

    options = {"maximum": 1000, "duration": 1.0, "precision": 0.0, "loss_verification": 0}
    laboratory = Laboratory(loses_one)
    measured(ConcurrentConnections("held", ConcurrentConnections.Options.model_validate(options)), laboratory)
    assert len(laboratory.requests) < 30


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("before", [0, 400])
def test_a_full_table_of_the_dut_is_the_limit_and_what_was_in_it_before_is_judged(before: int, late: bool) -> None:
    places = 1000 - before

    def bears(_: int, job: Job) -> JobOutcome:
        rate = int(asked(job).rate_per_s)
        return counted(rate, {"connect_timeout": rate - places}, late=late) if rate > places else counted(rate, {})

    def table_after(request: RoundRequest) -> ConnectionTable:
        rate = sum(int(asked(job).rate_per_s) for job in request.jobs)
        after, refused = min(1000, before + rate), max(0, rate - places)
        return ConnectionTable(limit=1000, before=before, after=after, refused=refused, replaced=0)

    laboratory = Laboratory(bears)
    laboratory.player.tabled = table_after
    result = measured(cps(loss_verification=3), laboratory)
    rates = [sum(asked(job).rate_per_s for job in request.jobs) for request in laboratory.requests]
    assert len(rates) == len(set(rates))
    assert result.values["limited_by"] == "DUT's connection table"
    told = f"the DUT's connection table was full (1000 of 1000 entries, {before} of them from before the trial; "
    assert told in str(result.values["limit"])
    assert (result.verdict is ResultVerdict.DISTURBED) == any("from before" in each for each in result.disturbances)
    assert (result.verdict is ResultVerdict.DISTURBED) == bool(before)


def test_a_table_that_is_half_empty_is_not_said_to_be_full() -> None:
    def table_after(_: RoundRequest) -> ConnectionTable:
        return ConnectionTable(limit=65_536, before=0, after=1000, refused=3, replaced=0)

    laboratory = Laboratory(lambda _, job: counted(int(asked(job).rate_per_s), {"reset": 1}))
    laboratory.player.tabled = table_after
    values = measured(cps(), laboratory).values
    assert values["limited_by"] != "DUT's connection table"
    assert "table" not in str(values["limit"])


def test_segments_that_each_side_sent_again_stand_in_the_table() -> None:
    def again(_: int, job: Job) -> JobOutcome:
        client, server = (Segments(sent=100, resent=resent, damaged=0, repeated=0, not_expected=0) for resent in (7, 9))
        outcome = counted(int(asked(job).rate_per_s), {})
        known = outcome.figures.connections.replace(segments=client, server_segments=server)
        return outcome.replace(figures=Figures(connections=known))

    (section,) = sections([measured(cps(), Laboratory(again))], {})
    heads = [column.head for column in section.table.columns]
    cells = dict(zip(heads, section.rows[0].cells, strict=True))
    assert (cells["by the client"], cells["by the server"]) == ("7", "9")


def test_where_nothing_was_due_nothing_is_borne() -> None:
    def refused(_: int, job: Job) -> JobOutcome:
        due = round(asked(job).rate_per_s)
        return counted(due, {"refused": due} if due else {})

    found = measured(cps(maximum=100), Laboratory(refused, clients_per_port=16)).values["connections_per_s"]
    assert found.value is None


def test_each_client_that_takes_part_has_something_due_after_the_ramp() -> None:
    def bears(_: int, job: Job) -> JobOutcome:
        assert asked(job).rate_per_s >= 1.0
        return counted(round(asked(job).rate_per_s), {})

    found = measured(cps(maximum=8, ramp=2.0), Laboratory(bears, clients_per_port=16)).values["connections_per_s"]
    assert found.value == 8


def test_of_more_clients_than_connections_so_many_take_part() -> None:
    laboratory = Laboratory(lambda _, job: counted(asked(job).connections, {}), clients_per_port=3)
    options = {"maximum": 2, "precision": 0, "duration": 1.0}
    method = ConcurrentConnections("held", ConcurrentConnections.Options.model_validate(options))
    assert measured(method, laboratory).values["concurrent_connections"] == Bounded(
        value=2, lower=2, limited_by=LimitedBy.MAXIMUM_LOAD
    )
    assert [asked(job).connections for job in laboratory.requests[0].jobs] == [1, 1]


def test_clients_share_rate_and_connections() -> None:
    laboratory = Laboratory(lambda _, job: counted(asked(job).connections, {}), clients_per_port=3)
    options = {"maximum": 100, "rate": 60, "precision": 0, "duration": 1.0}
    method = ConcurrentConnections("held", ConcurrentConnections.Options.model_validate(options))
    found = measured(method, laboratory).values["concurrent_connections"]
    assert found == Bounded(value=100, lower=100, limited_by=LimitedBy.MAXIMUM_LOAD)
    jobs = [asked(job) for job in laboratory.requests[0].jobs]
    assert [(job.connections, job.rate_per_s) for job in jobs] == [(34, 20.0), (33, 20.0), (33, 20.0)]


def test_the_number_that_is_held_is_found_to_the_last() -> None:
    def holds(_: int, job: Job) -> JobOutcome:
        wanted = asked(job).connections
        return counted(wanted, {"connect_timeout": wanted - 317} if wanted > 317 else {})

    options = {"maximum": 1000, "precision": 0, "duration": 1.0}
    method = ConcurrentConnections("held", ConcurrentConnections.Options.model_validate(options))
    found = measured(method, Laboratory(holds)).values["concurrent_connections"]
    assert found == Bounded(value=317, lower=317, upper=318, limited_by=LimitedBy.DUT)


def test_a_tool_that_fails_leaves_the_result_incomplete() -> None:
    laboratory = Laboratory(lambda _, job: JobOutcome(failure="no nginx", repeatable=False))
    assert measured(cps(maximum=2), laboratory).verdict is ResultVerdict.INCOMPLETE


def every(number: int, kind: str, due: int) -> JobOutcome:
    """A server breaks every so-many-th answer in this way."""
    return counted(due, {kind: due // number} if due >= number else {})


@pytest.mark.parametrize("kind", ["reset", "short", "status", "length", "content"])
def test_answers_that_are_wrong_at_every_load_are_told_and_are_no_number(kind: str) -> None:
    result = measured(cps(), Laboratory(lambda _, job: every(20, kind, int(asked(job).rate_per_s))))
    found = result.values["connections_per_s"]
    assert (found.value, found.lower, result.verdict) == (None, None, ResultVerdict.INCOMPLETE)
    assert str(found.reason_null).startswith("5 % of the answers are wrong")
    (section,) = sections([result], {})
    assert "gives no result by TCP: 5 % of the answers" in str(section.sentence)


def test_wrong_answers_of_an_overloaded_server_are_a_limit() -> None:
    def overloaded(_: int, job: Job) -> JobOutcome:
        rate = int(asked(job).rate_per_s)
        return counted(rate, {"status": rate - 300} if rate > 300 else {})

    found = measured(cps(), Laboratory(overloaded)).values["connections_per_s"]
    assert found.value is not None
    assert 295 <= found.value <= 300


def test_a_trial_without_figures_is_no_failed_load() -> None:
    """A server that dies in one of many trials leaves no interval behind."""

    def dies(trial: int, job: Job) -> JobOutcome:
        rate = int(asked(job).rate_per_s)
        if rate < 6000:
            return JobOutcome(failure="its server ended", repeatable=False)
        return counted(rate, {"connect_timeout": 1})

    result = measured(cps(), Laboratory(dies))
    assert result.verdict is ResultVerdict.INCOMPLETE
    assert result.values["connections_per_s"] == Bounded(value=None, reason_null="a trial gave no figures")


def test_goodput_is_that_of_the_greatest_rate() -> None:
    laboratory = Laboratory(lambda _, job: counted(int(asked(job).rate_per_s), {}))
    options = {"maximum": 50, "object_bytes": [1000], "duration": 1.0}
    method = HttpTransactions("http", HttpTransactions.Options.model_validate(options))
    values = measured(method, laboratory).values
    assert values["goodput_bits_per_s"] == 8 * 1000 * 50


def test_latency_takes_a_rate_or_an_earlier_test_and_not_both() -> None:
    for wrong in ({}, {"rate": 10, "of": "cps"}):
        with pytest.raises(ValueError, match="give either"):
            HttpLatency.Options.model_validate(wrong)


def test_a_latency_of_a_server_that_fails_is_not_told_without_its_failures() -> None:
    times = Times(count=95, minimum_ns=10**6, mean_ns=1e6, maximum_ns=10**6, histogram=histogram_of([(10**6, 95)]))

    def fails(_: int, job: Job) -> JobOutcome:
        outcome = counted(100, {"short": 5})
        known = outcome.figures.connections.replace(first_byte=times)
        return outcome.replace(figures=Figures(connections=known))

    options = {"rate": 100, "duration": 1.0, "object_bytes": [1000]}
    result = measured(HttpLatency("ttfb", HttpLatency.Options.model_validate(options)), Laboratory(fails))
    (section,) = sections([result], {})
    assert str(section.sentence).endswith("in half of those that pass (5 closed before the answer was complete)")


def test_through_a_dut_takes_two_ports() -> None:
    method = cps(through=True)
    assert [one.option for one in method.find_misfits({"s0": ["c0"]}, ["server"])] == [("through",)]
    assert not list(method.find_misfits({"s0": ["c0"], "s1": ["c1"]}, ["server"]))


@pytest.mark.parametrize(
    ("option", "options"),
    [
        ("tls", {"tls": ["none", "1.3"]}),
        ("target", {"target": "http://198.18.0.1/"}),
        ("answer_within", {"answer_within": 40.0}),
        ("object_bytes", {"object_bytes": [1, 65_537]}),
        ("client_threads", {"client_threads": 65}),
        ("server_threads", {"server_threads": 2}),
    ],
)
def test_what_only_the_kernels_sockets_can_do_is_refused_in_the_hook(option: str, options: dict[str, Any]) -> None:
    ports = {"s0": ["c0"], "s1": ["c1"]}
    (misfit,) = cps(driver="xdp", **options).find_misfits(ports, ["server"])
    assert misfit.option == (option,)
    assert not list(cps(**options).find_misfits(ports, ["server"]))
    assert not list(cps(driver="xdp").find_misfits(ports, ["server"]))


def test_a_link_that_a_token_bucket_holds_to_its_rate_is_refused_in_the_hook() -> None:
    context = Laboratory(lambda _, job: counted(int(asked(job).rate_per_s), {})).context
    assert cps(driver="xdp").objection(context) is None
    context.clients = tuple(each.replace(bucket_bytes=32_768) for each in context.clients)
    assert "token bucket" in cps(driver="xdp").objection(context).message
    assert cps().objection(context) is None


def test_clients_share_the_server_that_an_interface_has_in_its_hook() -> None:
    laboratory = Laboratory(lambda _, job: counted(int(asked(job).rate_per_s), {}), ports=3)
    method = cps(driver="xdp", through=True, serving=["s2"], maximum=300)
    assert measured(method, laboratory).values["connections_per_s"].value == 300
    jobs = laboratory.requests[0].jobs
    assert [(job.client, job.server, asked(job).clients) for job in jobs] == [("c00", "c20", 2), ("c10", "c20", 0)]
    assert len({job.port for job in jobs}) == 1
    measured(cps(driver="kernel", through=True, maximum=300), laboratory)
    jobs = laboratory.requests[-1].jobs
    assert [(asked(job).clients, job.server) for job in jobs] == [(1, "c20"), (1, "c20")]
    assert len({job.port for job in jobs}) == 2


@pytest.mark.parametrize(
    ("ports", "options", "asks"),
    [
        (2, {}, ["c00 s0", "c10 s1"]),
        (2, {"through": True}, ["c00 c10"]),
        (4, {"through": True}, ["c00 c20", "c10 c30"]),
        (5, {"through": True}, ["c00 c30", "c10 c40", "c20 c30"]),
        (4, {"through": True, "serving": ["s0"]}, ["c10 c00", "c20 c00", "c30 c00"]),
        (2, {"target": "http://198.18.0.1/"}, ["c00 None"]),
    ],
)
def test_clients_of_all_ports_ask(ports: int, options: dict[str, Any], asks: list[str]) -> None:
    laboratory = Laboratory(lambda _, job: counted(int(asked(job).rate_per_s), {}), ports=ports)
    measured(cps(maximum=300, **options), laboratory)
    assert [f"{job.client} {job.server}" for job in laboratory.requests[0].jobs] == asks


def test_what_became_of_the_connections_of_each_port_is_told_and_adds_up() -> None:
    def bears(_: int, job: Job) -> JobOutcome:
        rate = int(asked(job).rate_per_s)
        return counted(rate, {"refused": rate - 700} if job.client == "c10" and rate > 700 else {})

    result = measured(cps(maximum=3000, through=True, precision=0.5), Laboratory(bears, ports=4))
    assert result.values["by_port"] == (
        "passed: s0: 550 of 550 completed; s1: 550 of 550 completed. "
        "did not pass: s0: 1100 of 1100 completed; s1: 700 of 1100 completed, 400 refused"
    )
    (section,) = sections([result], {})
    assert any(note.about == "By port" for note in section.notes)


@pytest.mark.parametrize(
    "options", [{"serving": ["s9"]}, {"serving": ["s0", "s1"]}, {"serving": ["s1"], "through": False}]
)
def test_ports_that_cannot_serve_are_refused(options: dict[str, Any]) -> None:
    method = cps(**{"through": True, **options})
    (misfit,) = method.find_misfits({"s0": ["c0"], "s1": ["c1"]}, ["server"])
    assert misfit.option == ("serving",)
