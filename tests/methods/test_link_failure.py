"""The option `failure` of streams and frames: what of it cannot be is refused, and rounds are asked for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from nicbench.bench_file import load
from nicbench.core.bond import LinkFailure
from nicbench.core.errors import NicbenchError
from nicbench.methods.frames import Frames
from nicbench.methods.stream import Stream
from nicbench.report.section import name_of_row
from nicbench.report.tables import sections

from .round_contexts import Laboratory, streamed

FAILURE = {"port": "s0", "link": 2, "after": 3.0, "lasts": 4.0}


def stream(**options: Any) -> Stream:
    return Stream("tcp", Stream.Options(**options))


@pytest.mark.parametrize(
    ("method", "options"),
    [(Stream, {"duration": 7.0}), (Frames, {"warm_up": 1.0, "duration": 5.0, "instances": (1,)})],
)
def test_a_link_that_would_not_be_back_in_time_is_refused(method: Any, options: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="the link is to be back 7 s after the clients begin"):
        method.Options(failure=FAILURE, **options)


def test_seconds_that_the_tool_does_not_count_are_part_of_the_round() -> None:
    tool = {"kind": "iperf3", "omit_s": 2}
    assert stream(failure=FAILURE, duration=5.5, workload=tool).options.failure is not None
    with pytest.raises(ValidationError, match=r"a round lasts 6\.5 s"):
        stream(failure=FAILURE, duration=4.5, workload=tool)


def test_a_port_that_is_not_the_servers_is_refused() -> None:
    (misfit,) = stream(failure={**FAILURE, "port": "s9"}).find_misfits({"s0": ["c0"]}, ["server"])
    assert misfit.message == "there is no port of the server called `s9`"
    assert not list(stream(failure=FAILURE).find_misfits({"s0": ["c0"]}, ["server"]))


def test_a_port_that_is_no_bond_is_refused_before_the_first_round() -> None:
    laboratory = Laboratory(lambda number, job: streamed(1e6))
    objection = stream(failure=FAILURE).objection(laboratory.context)
    assert "s0 is to fail, which is no bond that nicbench makes" in objection.message
    assert stream().objection(laboratory.context) is None


def test_a_link_that_the_bond_has_not_is_refused() -> None:
    laboratory = Laboratory(lambda number, job: streamed(1e6))
    (server,) = laboratory.context.servers
    laboratory.context.servers = (server.replace(bond_links=2),)
    assert stream(failure=FAILURE).objection(laboratory.context) is None
    objection = stream(failure={**FAILURE, "link": 3}).objection(laboratory.context)
    assert objection.message == "link 3 of s0 is to fail, which has 2"


async def test_only_rounds_of_its_port_have_the_failure() -> None:
    laboratory = Laboratory(lambda number, job: streamed(1e6), ports=2)
    await stream(failure=FAILURE, at_once=("port", "all")).run(laboratory.context)
    asked = {tuple(job.server for job in request.jobs): request.failure for request in laboratory.requests}
    assert asked == {("s0",): LinkFailure(**FAILURE), ("s1",): None, ("s0", "s1"): LinkFailure(**FAILURE)}


@pytest.mark.parametrize(
    ("lab", "said"),
    [
        ("", "a link of s0 is to fail, which is no bond that nicbench makes"),
        (", bond: {links: 2}", "link 3 of s0 is to fail, which has 2"),
        (", bond: {links: 4}", None),
    ],
)
@pytest.mark.parametrize("nested", [False, True], ids=["a test", "a placement of it"])
def test_a_bench_file_whose_link_cannot_fail_is_refused_before_anything_is_made(
    lab: str, said: str | None, nested: bool, tmp_path: Path
) -> None:
    test = "{method: stream, failure: {port: s0, link: 3}}"
    written = f"{{name: a, method: placement, of: {test}}}" if nested else test.replace("{", "{name: a, ", 1)
    bench = tmp_path / "bench.yaml"
    bench.write_text(f"nicbench: 1\ntitle: t\nlab: {{kind: clients{lab}}}\ndut: server\ntests: [{written}]\n")
    if said is None:
        load(bench)
        return
    with pytest.raises(NicbenchError) as refused:
        load(bench)
    assert said in str(refused.value)


async def test_question_and_answer_are_about_the_link_that_failed() -> None:
    laboratory = Laboratory(lambda number, job: streamed(1e6))
    results = await stream(at_once=("port",), direction=("forward",)).run(laboratory.context)
    failed = "link 2 of s0 (s0p2) was down on purpose from 3.0 s to 7.0 s: the connection went on, silent for 0.4 s"
    told = [one.replace(values={**one.values, "failure": failed}) for one in results]
    (ports,) = (one for one in sections(told, {}) if one.table.part == "ports")
    assert f"writes of 8192 bytes): {failed}; over the whole round it moved" in (ports.sentence or "")
    assert "for how long are they silent" in Stream.question_of({"failure": FAILURE})
    assert Stream.question_of({"failure": None}) == Stream.question


async def test_a_row_that_is_named_in_words_is_named_without_its_heading() -> None:
    laboratory = Laboratory(lambda number, job: streamed(1e6), ports=2)
    results = await stream(at_once=("all",), direction=("forward",)).run(laboratory.context)
    combined = next(one for one in sections(results, {}) if one.table.part == "combined")
    assert name_of_row(combined.table, combined.rows[0]) == "TCP to the server, writes of 8192 bytes"
