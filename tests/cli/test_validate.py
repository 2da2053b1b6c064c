"""What ``validate`` prints, against a recorded output."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
POLICER = (HERE.parents[1] / "examples" / "policer.yaml").read_text()


def test_the_plan_of_the_policer_is_printed(nicbench: Any) -> None:
    Path("policer.yaml").write_text(POLICER)
    ended = nicbench("validate", "policer.yaml")
    assert ended.status == 0
    assert ended.stdout == (HERE / "golden" / "validate-policer.txt").read_text()


def test_options_are_called_by_their_labels_with_their_units(nicbench: Any) -> None:
    examples = HERE.parents[1] / "examples"
    printed = nicbench("validate", str(examples / "esxi.yaml")).stdout
    assert "(MACs 02:00:00:00:01:00 and 02:00:00:00:01:01, description l3fwd in a guest of ESXi)" in printed
    assert "(huge pages yes, memory 1 GiB)" in printed
    printed = nicbench("validate", str(examples / "reflector.yaml")).stdout
    assert "faults seed 7; loss 0.1 %; delay 50 us; rate 1 Mpps" in printed


def test_the_plan_as_json_names_points_and_duration(nicbench: Any) -> None:
    Path("policer.yaml").write_text(POLICER)
    plan = json.loads(nicbench("validate", "policer.yaml", "--json").stdout)
    assert plan["valid"] is True
    assert plan["tests"][0]["points"] == 2
    assert plan["calibration"] == {"ceilings": [], "latencies": [], "estimate_s": 0.0}
    tests_s = sum(test["estimate_s"] for test in plan["tests"])
    assert plan["estimate_s"] == pytest.approx(plan["calibration"]["estimate_s"] + tests_s)
    assert plan["dut"]["rate"] == 200_000.0


def test_a_plan_without_calibration_says_so(nicbench: Any) -> None:
    printed = nicbench("validate", "bench.yaml").stdout
    assert "no calibration before the first test" in printed
    assert json.loads(nicbench("validate", "bench.yaml", "--json").stdout)["calibration"]["estimate_s"] == 0.0


@pytest.mark.parametrize(
    ("ports", "at_once", "points"),
    [
        (1, "[port, all]", 1),
        (4, "[port, all]", 5),
        (1, "[port, card, growing]", 2),
        (4, "[port, card, growing, all]", 9),
        (3, "[growing]", 1),
    ],
)
def test_the_plan_of_streams_counts_the_ports_of_the_bench_file(
    nicbench: Any, ports: int, at_once: str, points: int
) -> None:
    lab = f"lab: {{kind: clients, ports: {ports}}}\ndut: {{kind: server}}\n"
    options = f"direction: [forward, reverse], at_once: {at_once}, duration: 10 s, repetitions: 3"
    tests = f"tests: [{{name: t, method: stream, {options}}}]\n"
    Path("rounds.yaml").write_text(f"nicbench: 1\ntitle: x\n{lab}{tests}")
    plan = json.loads(nicbench("validate", "rounds.yaml", "--json").stdout)
    assert plan["tests"][0]["points"] == 2 * points
    per_round_s = plan["estimate_s"] / (2 * points * 3)
    assert 10.0 < per_round_s < 20.0


def test_the_plan_counts_the_ports_of_the_measured_host_that_are_named(nicbench: Any) -> None:
    def estimate_s(ports: int) -> float:
        of_server = "".join(f"  s{at}: {{host: server, device: eth{at}}}\n" for at in range(ports))
        of_clients = "".join(f"  c{at}: {{host: client, device: eth{at}}}\n" for at in range(ports))
        links = "".join(f"  - c{at} <-> s{at}\n" for at in range(ports))
        hosts = "hosts:\n  server: {kind: ssh, address: a.example}\n  client: {kind: ssh, address: b.example}\n"
        rest = "dut: {kind: server, host: server}\ntests: [{name: t, method: request-response}]\n"
        text = f"nicbench: 1\ntitle: x\n{hosts}ports:\n{of_server}{of_clients}links:\n{links}{rest}"
        Path("rounds.yaml").write_text(text)
        ended = nicbench("validate", "rounds.yaml", "--json")
        assert ended.status == 0, ended.stdout + ended.stderr
        return float(json.loads(ended.stdout)["estimate_s"])

    assert estimate_s(2) == pytest.approx(2 * estimate_s(1))


def test_the_plan_of_rounds_has_neither_a_tester_nor_its_calibration(nicbench: Any) -> None:
    lab = "lab: {kind: clients}\ndut: {kind: server}\n"
    Path("rounds.yaml").write_text(f"nicbench: 1\ntitle: x\n{lab}tests: [{{name: t, method: stream}}]\n")
    plan = json.loads(nicbench("validate", "rounds.yaml", "--json").stdout)
    assert plan["estimate_s"] > 0.0
    printed = " ".join(nicbench("validate", "rounds.yaml").stdout.split())
    assert "estimated duration: about " in printed
    assert "without the making of the testbed, preparations and repeats" in printed
    assert "at most" not in printed
    assert not {"tester", "calibration"} & plan.keys()


COMPARED = """runs: 2
configurations:
  low:
  high: {dut: {rate: 400 kpps}}
"""


def test_configurations_are_shown_with_what_differs_the_order_and_the_whole_duration(nicbench: Any) -> None:
    Path("policer.yaml").write_text(POLICER + COMPARED)
    Path("alone.yaml").write_text(POLICER)
    printed = nicbench("validate", "policer.yaml").stdout
    for text in ("configuration low", "configuration high", "dut.rate", "400 kpps", "and the making of 4 testbeds"):
        assert text in printed
    plan, alone = (json.loads(nicbench("validate", name, "--json").stdout) for name in ("policer.yaml", "alone.yaml"))
    assert plan["estimate_s"] == pytest.approx(4 * alone["estimate_s"])
    turns = [f"{turn['configuration']} {turn['run']}" for turn in plan["turns"]]
    assert sorted(turns) == ["high 1", "high 2", "low 1", "low 2"]
    assert f"drawn with seed 1): {', '.join(turns)}" in printed
    assert plan["differences"] == [{"setting": "dut.rate", "values": {"low": "200 kpps", "high": "400 kpps"}}]
    assert plan["configurations"]["high"]["dut"]["rate"] == 400_000.0


def test_validating_leaves_nothing_behind(nicbench: Any) -> None:
    nicbench("validate", "bench.yaml")
    assert [path.name for path in Path().iterdir()] == ["bench.yaml"]


def test_several_files_are_checked_at_once(nicbench: Any) -> None:
    Path("policer.yaml").write_text(POLICER)
    ended = nicbench("validate", "bench.yaml", "policer.yaml")
    assert ended.status == 0
    assert "bench.yaml is valid" in ended.stdout
    assert "policer.yaml is valid" in ended.stdout


def test_each_of_several_files_is_reported_though_others_are_wrong(nicbench: Any) -> None:
    Path("wrong.yaml").write_text(POLICER.replace("title:", "titel:"))
    ended = nicbench("validate", "wrong.yaml", "missing.yaml", "bench.yaml")
    assert ended.status == 2
    assert "wrong.yaml:" in ended.stderr
    assert "missing.yaml: there is no such file" in ended.stderr
    assert "2 of 3 bench files are wrong" in ended.stderr
    assert "bench.yaml is valid" in ended.stdout


def test_json_of_several_files_is_refused_because_stdout_holds_one_document(nicbench: Any) -> None:
    ended = nicbench("validate", "bench.yaml", "bench.yaml", "--json")
    assert ended.status == 2
    assert json.loads(ended.stdout)["error"]["message"] == "--json prints the plan of one bench file"


@pytest.mark.parametrize(
    ("lab", "inner", "placements", "said"),
    [
        ("{kind: clients}", "stream", 2, "it needs as many clients as NUMA nodes; `stream` has 1 of a port at once"),
        ("{kind: clients, clients_per_port: 3}", "request-response", 2, "`request-response` has 1 of a port at once"),
        ("{kind: clients, ports: 2}", "stream", 3, "`balanced`, unless the ports are on several NUMA nodes: it needs"),
        ("{kind: clients, clients_per_port: 2}", "stream", 3, None),
    ],
)
def test_the_plan_says_that_too_few_clients_are_not_placed_on_all_nodes(
    nicbench: Any, lab: str, inner: str, placements: int, said: str | None
) -> None:
    test = f"{{name: a, method: placement, memory_loads: [0], of: {{method: {inner}}}}}"
    Path("numa.yaml").write_text(f"nicbench: 1\ntitle: x\nlab: {lab}\ndut: {{kind: server}}\ntests: [{test}]\n")
    printed = nicbench("validate", "numa.yaml").stdout
    assert ("a asks for what will not be measured, which its result will state:" in printed) == (said is not None)
    assert (said or "") in printed
    (planned,) = json.loads(nicbench("validate", "numa.yaml", "--json").stdout)["tests"]
    assert ("not_measured" in planned) == (said is not None)
    assert planned["points"] % placements == 0
