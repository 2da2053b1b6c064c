"""The report of a run of workloads: its answer, its failures on the first page, its rounds; nothing of frames."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace

import pyarrow.parquet as pq
import pytest
from tests.fakes import FakeHost, FakeMonitors, FakePlayer

from nicbench import report
from nicbench.core.bond import (
    Bond,
    BondFlow,
    BondObservation,
    BondPort,
    Connection,
    FlowSilence,
    LinkFailure,
    LinkFailureOutcome,
    PortBytes,
)
from nicbench.core.events import Bus, RunFinished, RunStarted
from nicbench.core.judging import Thresholds, Verdict
from nicbench.core.plan import Plan
from nicbench.core.result import Result, ResultVerdict, Summary
from nicbench.core.round import (
    EndpointFacts,
    Figures,
    Flow,
    Job,
    JobOutcome,
    JobSpec,
    MachineCpu,
    ProcessShare,
    Round,
    RoundRequest,
)
from nicbench.measure.rounds import LiveRoundContext, RoundMaker
from nicbench.measure.samples import SampleLog, TestSetting
from nicbench.methods.stream import Stream
from nicbench.report.document.blocks import Table, plain
from nicbench.report.drawing.kit import NARROW, WIDE
from nicbench.report.drawing.over_time import failed_link_chart
from nicbench.report.gather import gather
from nicbench.report.numbers import UNKNOWN
from nicbench.report.sections.results import _title_of
from nicbench.report.sections.watched import cpu_user_parts, failed_link_parts
from nicbench.report.tables import sections
from nicbench.report.watched import list_cpu_users
from nicbench.stats.links import failed_link_sentence, list_failed_links
from nicbench.store import RunFolder
from nicbench.testbed.labs.base import Endpoint, EndpointTestbed

LINK = 100e6
Outcome = Callable[[int, Job], JobOutcome]
Bonded = Callable[[RoundRequest], tuple[BondObservation, ...]]


def moved(number: int, job: Job) -> JobOutcome:
    flow = Flow(direction="forward", received_bytes=6_000_000, received_bits_per_s=48e6, retransmissions=0)
    return JobOutcome(
        figures=Figures(flows=(flow,)),
        version="3.12",
        client_command=("iperf3", "-c", "198.18.0.1"),
        files=(f"raw/r{number:04d}/1-iperf3-{job.client}-client.out",),
        began_s=0.0,
        took_s=1.0,
    )


def missing(number: int, job: Job) -> JobOutcome:
    return JobOutcome(failure="iperf3 is not installed on the client; next: apt-get install iperf3", repeatable=False)


def no_bonds(request: RoundRequest) -> tuple[BondObservation, ...]:
    return ()


def finished(
    parent: Path, outcome: Outcome, verdict: ResultVerdict = ResultVerdict.VALID, bonded: Bonded = no_bonds
) -> Path:
    """A run of `stream` over two ports with two clients each."""
    folder, bus = RunFolder.create(parent, "title: Two ports\n", "Two ports"), Bus()
    bus.subscribe(folder.journal.append)
    ends = [_end("s0", None), *(_end(f"c0{each}", "s0") for each in "ab")]
    ends += [_end("s1", None), *(_end(f"c1{each}", "s1") for each in "ab")]
    servers, clients = (tuple(end for end in ends if (end.facts.port is None) is own) for own in (True, False))
    testbed = EndpointTestbed(servers=servers, clients=clients, link_is_nominal=False)
    bus.publish(
        RunStarted(run_id=folder.run_id, title="Two ports", nicbench_version="0", wall_time="2026-01-31", seed=1)
    )
    folder.write_json("plan.json", _plan(folder.run_id, ends))
    player = FakePlayer(outcome, bonded=bonded)
    maker = RoundMaker(player, FakeMonitors(), Thresholds(), SampleLog({}, bus))
    context = LiveRoundContext(TestSetting("tcp", 1, 1e6), maker, testbed)
    asyncio.run(Stream("tcp", Stream.Options(duration=1.0)).run(context))
    bus.publish(RunFinished(verdict=verdict))
    folder.finish(Summary(title="Two ports", verdict=verdict, results=folder.journal.results()))
    return folder.path


def _end(name: str, port: str | None) -> Endpoint:
    facts = EndpointFacts(
        name=name, host="h" if port is None else name, machine="local", address="198.18.0.1", port=port
    )
    return Endpoint(FakeHost(facts.host), facts.replace(link_bits_per_s=LINK))


def _plan(run_id: str, ends: Sequence[Endpoint]) -> Plan:
    endpoints = {end.name: end.facts.model_dump(mode="json", exclude={"name"}, exclude_none=True) for end in ends}
    return Plan(
        run_id=run_id,
        title="Two ports",
        nicbench_version="0",
        seed=1,
        dut={"kind": "server"},
        link_bits_per_s=LINK,
        link_is_nominal=False,
        facts={"endpoints": endpoints},
        thresholds=Thresholds().rows(),
    )


def text_of(page: str) -> str:
    """What a reader sees, without drawings."""
    plain = re.sub(r"<style>.*?</style>|<svg.*?</svg>", " ", page, flags=re.DOTALL)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", plain))


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return finished(tmp_path_factory.mktemp("good"), moved)


def test_the_answer_is_what_all_ports_move_together_and_what_held_it_down(good: Path) -> None:
    view = gather(RunFolder.open(good))
    assert "moves 0.192\u00a0Gb/s over all ports together" in view.headline
    assert view.headline.endswith(": the links were full.")
    assert [section.table.part for section in view.sections] == ["combined", "ports", "clients"]


def test_nothing_is_said_of_frames_and_testers(good: Path) -> None:
    text = text_of(report.build(good).read_text(encoding="utf-8"))
    for word in ("tester", "kept its pace", "frame size", "NDR", "trials", "Ceiling", "None"):
        assert word not in text, word


def test_every_round_is_there_with_its_tools_commands_and_files(good: Path) -> None:
    text = text_of(report.build(good).read_text(encoding="utf-8"))
    assert "tcp: 3 rounds" in text
    assert "c1b and s1 iperf3 3.12" in text
    assert "iperf3 -c 198.18.0.1" in text
    assert "1-iperf3-c0a-client." in text


def test_the_rounds_of_a_test_are_one_table_of_tools_and_one_of_counters(tmp_path: Path) -> None:
    def counting(number: int, job: Job) -> JobOutcome:
        return moved(number, job)

    page = report.build(finished(tmp_path, counting)).read_text(encoding="utf-8")
    rounds = page[page.index('id="rounds"') :]
    assert rounds.count("<th", 0, rounds.index("</table>")) >= 6
    assert rounds.count("<table") <= 2
    for number in (1, 2, 3):
        assert f"r000{number}: " in text_of(rounds)


def test_a_round_of_which_something_is_to_be_said_stands_apart(tmp_path: Path) -> None:
    def outcome(number: int, job: Job) -> JobOutcome:
        return missing(number, job) if number == 2 else moved(number, job)

    page = report.build(finished(tmp_path, outcome, ResultVerdict.INCOMPLETE)).read_text(encoding="utf-8")
    rounds = text_of(page[page.index('id="rounds"') :])
    assert "r0002: " in rounds
    assert rounds.index("r0003: ") < rounds.index("r0002: "), "those of which nothing is to be said come first"
    assert "iperf3 is not installed" in rounds


def test_names_of_ports_are_written_as_they_were_given() -> None:
    places = [
        Result(
            id=f"transfer/{place}",
            method="transfer",
            scope="one direction",
            parameters={"place": place, "transfer": "1 MB", "write_bytes": write},
            values={"throughput_bits_per_s": 95e6},
        )
        for place in ("s0 from c0", "s1 from c1")
        for write in (1024, 8192)
    ]
    (section, *_) = sections(places, {})
    assert [grid.title for grid in section.grids] == ["s0 from c0", "s1 from c1"]
    assert [_title_of(grid.title or "", section) for grid in section.grids] == ["s0 from c0", "s1 from c1"]


def test_files_that_clients_left_are_named_and_what_is_missing_of_them_is_said(tmp_path: Path) -> None:
    def outcome(number: int, job: Job) -> JobOutcome:
        lost = {"notes": ("its frame samples are lost: the disk was full",)} if job.client == "c0b" else {}
        return moved(number, job).replace(files=(f"frames/r{number:04d}.parquet",), **lost)

    path = finished(tmp_path, outcome)
    (path / "frames").mkdir()
    text = text_of(report.build(path).read_text(encoding="utf-8"))
    assert text.count("its frame samples are lost: the disk was full") == 2
    assert "frames/r0001.parquet" in text.replace(" ", "")
    assert "rounds.parquet" in text


def test_the_testbed_has_each_port_with_the_clients_that_lead_to_it(good: Path) -> None:
    view = gather(RunFolder.open(good))
    assert [end.name for end in view.endpoints] == ["s0", "c0a", "c0b", "s1", "c1a", "c1b"]


def test_the_folder_has_a_row_for_each_job_and_no_empty_table_of_trials(good: Path) -> None:
    assert pq.read_table(good / "rounds.parquet").num_rows == 2 + 2 + 4
    assert not (good / "trials.parquet").exists()


def test_a_missing_tool_is_told_on_the_first_page_once_and_in_its_own_words(tmp_path: Path) -> None:
    view = gather(RunFolder.open(finished(tmp_path, missing, ResultVerdict.INCOMPLETE)))
    assert view.headline == "Nothing was measured: no tool gave a figure."
    assert view.verdict_text.count("apt-get install iperf3") == 1
    assert "(8 times, first c0a and s0 in r0001)" in view.verdict_text


def test_one_client_that_fails_takes_nothing_from_the_others(tmp_path: Path) -> None:
    def outcome(number: int, job: Job) -> JobOutcome:
        return missing(number, job) if job.client == "c0b" else moved(number, job)

    view = gather(RunFolder.open(finished(tmp_path, outcome, ResultVerdict.INCOMPLETE)))
    rates = {row.result.id: row.result.values["throughput_bits_per_s"] for row in view.sections[-1].rows}
    assert [rate is None for name, rate in rates.items() if name.endswith("c0b")] == [True, True]
    assert all(rate == 48e6 for name, rate in rates.items() if not name.endswith("c0b"))
    assert "have no value" in view.headline


def seen_of(request: RoundRequest) -> tuple[BondObservation, ...]:
    """The bond of the server: connections of the first two jobs leave by one port, those of the others by another."""
    ports = tuple(BondPort(name=name, usable=True, speed_bits_per_s=25e9) for name in ("eth2", "eth3"))
    flows = tuple(
        BondFlow(
            jobs=(number,),
            connection=Connection(
                source="198.18.0.1",
                source_port=job.port,
                destination="198.18.0.2",
                destination_port=40000,
                sent_bytes=5_000_000,
                received_bytes=100,
            ),
            port="eth2" if number < 3 else "eth3",
        )
        for number, job in enumerate(request.jobs, 1)
    )
    counted = {}
    for port in ("eth2", "eth3"):
        frames = 5_228_000 * sum(flow.port == port for flow in flows)
        counted[port] = PortBytes(sent=2 * frames, received=5000, sent_until_midst=frames, received_until_midst=2500)
    bond = Bond(name="bond0", mode="802.3ad", policy="layer3+4", ports=ports, aggregator=1, kernel="6.1.0")
    seen = BondObservation(endpoint="s0", bond=bond, flows=flows, ports=counted, confirmed=True)
    return (seen,)


def test_with_a_bond_it_is_said_who_shared_a_port(tmp_path: Path) -> None:
    folder = finished(tmp_path, moved, bonded=seen_of)
    view = gather(RunFolder.open(folder))
    combined, _, clients = view.sections
    assert any(
        "c0a and c0b shared eth2 (25 Gb/s): 48 Mb/s and 48 Mb/s; c1a and c1b shared eth3" in one.text
        for one in combined.notes
    )
    heads = [column.head for column in clients.table.columns]
    ports = {row.result.parameters["client"]: row.cells[heads.index("Port of the bond")] for row in clients.rows[-4:]}
    assert ports == {"c0a": "eth2", "c0b": "eth2", "c1a": "eth3", "c1b": "eth3"}
    text = text_of(report.build(folder).read_text(encoding="utf-8"))
    assert "Bond bond0 of s0, 802.3ad, layer3+4, active aggregator 1" in text
    assert "The counters of its ports support the prediction." in text
    (row, *_) = pq.read_table(folder / "rounds.parquet").to_pylist()
    assert '"confirmed":true' in row["bonds_json"].replace(" ", "")


def test_without_a_bond_no_word_is_said_of_one(good: Path) -> None:
    view = gather(RunFolder.open(good))
    assert not any("ond" in column.head for section in view.sections for column in section.table.columns)
    assert "bond" not in text_of(report.build(good).read_text(encoding="utf-8")).lower()


JOB = Job(workload="iperf3", client="c0", server="s0", ask=JobSpec(), port=5201)


def played(number: int, took_s: float, *cpu: MachineCpu, warm_up: bool = False) -> Round:
    return Round(
        id=Round.id_of(number),
        key=f"tcp/{number}/0",
        test="tcp",
        configuration="",
        run=1,
        parameters={},
        repeat=0,
        request=RoundRequest(jobs=(JOB,), duration_s=took_s, warm_up=warm_up),
        outcomes=(JobOutcome(figures=Figures(), began_s=0.0, took_s=took_s),),
        cpu=cpu,
        verdict=Verdict(),
    )


def machine(name: str, own: float, strangers: float, *rows: ProcessShare) -> MachineCpu:
    idle = 1.0 - own - strangers
    return MachineCpu(
        machine=name, own=own, kernel=0.0, nicbench=0.0, strangers=strangers, idle=idle, steal=0.0, processes=rows
    )


def tool(share: float) -> ProcessShare:
    return ProcessShare(user="own", name="iperf3", share=share)


def busy(share: float) -> ProcessShare:
    return ProcessShare(user="stranger", name="stress-ng", share=share, processes=4)


def test_means_are_weighted_by_the_time_of_each_round_and_warm_ups_do_not_count() -> None:
    rounds = [
        played(1, 1.0, machine("server", 0.4, 0.4, tool(0.4), busy(0.4))),
        played(2, 3.0, machine("server", 0.2, 0.0, tool(0.2))),
        played(3, 9.0, machine("server", 0.9, 0.0, tool(0.9)), warm_up=True),
        played(4, 1.0, MachineCpu(machine="old", mean=0.5)),
    ]
    (server,) = list_cpu_users(rounds)
    assert server.machine == "server"
    assert tuple(server.shares[name] for name in ("own", "strangers", "pressure")) == (
        pytest.approx(0.25),
        pytest.approx(0.1),
        None,
    )
    assert [(row.name, round(row.mean, 3), row.greatest) for row in server.programs] == [
        ("iperf3", 0.25, 0.4),
        ("stress-ng", 0.1, 0.4),
    ]


def test_each_machine_has_a_row_and_a_table_of_its_ten_greatest_programs() -> None:
    many = (ProcessShare(user="stranger", name=f"program-{number}", share=0.01) for number in range(20))
    rounds = [played(1, 1.0, machine("server", 0.4, 0.2, *many), machine("c0", 0.1, 0.0, tool(0.1)))]
    tables = [block for block in cpu_user_parts(list_cpu_users(rounds)) if isinstance(block, Table)]
    assert [len(one.body) for one in tables] == [2, 10, 1]
    text = " ".join(plain(cell.inlines) for row in tables[2].body for cell in row.cells)
    assert "iperf3" in text
    assert "the test" in text


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
    failed = list_failed_links([pulled([silence(1), silence(1), silence(2, went_on=False)])], {"r0001"})
    blocks = failed_link_parts(failed, SimpleNamespace(figure=lambda *_: None))  # type: ignore[arg-type]
    (table,) = (each for each in blocks if isinstance(each, Table))
    rows = [[plain(cell.inlines) for cell in row.cells] for row in table.body]
    assert [(*row[:2], *row[4:]) for row in rows] == [
        ("c0a", "2", "0.3", "≤ 0.2", "yes"),
        ("c0b", "1", UNKNOWN, UNKNOWN, "no"),
    ]
    assert "1 of 3 connections stood still from then on" in failed_link_sentence(failed[0])


def test_where_every_connection_went_on_the_longest_silence_is_told() -> None:
    (failed,) = list_failed_links([pulled([silence(1), silence(2, down_s=1.25)])], {"r0001"})
    said = failed_link_sentence(failed)
    assert said.endswith("from 4.0 s to 8.0 s: all 2 connections went on, silent for 1.3 s.")


def test_the_time_in_which_the_link_was_down_is_shaded_behind_what_moved() -> None:
    (failed,) = list_failed_links([pulled([silence(1)])], {"r0001"})
    for form in (WIDE, NARROW):
        drawn = failed_link_chart(failed, form)
        values = [drawn["datasets"][layer["data"]["name"]] for layer in drawn["layer"]]
        assert {"from": 4.0, "to": 8.0, "what": "link down"} in values[0]
        assert {point["line"] for point in values[-1]} == {"c0a", "c0b"}
        assert max(point["t"] for point in values[-1]) == 12.5


def test_rounds_without_a_result_and_links_that_stayed_up_are_left_out() -> None:
    assert list_failed_links([pulled([silence(1)])], set()) == ()
    assert list_failed_links([pulled([], down_at_s=None)], {"r0001"}) == ()
