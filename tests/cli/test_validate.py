"""``nicbench validate`` and ``tune``, and how command lines are read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import typer

from nicbench.cli.app import COMMANDS, make_whole_app, rename_old

# What ``validate`` prints, against a recorded output.

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


# `nicbench tune` and `run --dry-run`: what would be set and what cannot be, and nothing is changed.

BENCH = """\
nicbench: 1
title: t
lab: {{kind: veth}}
dut: {{kind: kernel-forward}}
tuning: {tuning}
tests: [{{name: a, method: throughput, frame_bytes: [64]}}]
"""
SWAPPINESS = Path("/proc/sys/vm/swappiness")


def bench(tuning: str) -> str:
    Path("tuned.yaml").write_text(BENCH.format(tuning=tuning))
    return "tuned.yaml"


@pytest.mark.parametrize("command", [("tune",), ("run", "--dry-run")])
def test_the_plan_is_printed_and_nothing_is_changed(nicbench: Any, command: tuple[str, ...]) -> None:
    before = Path("/proc/sys/kernel/timer_migration").read_text()
    other = "false" if before.strip() == "1" else "true"
    written = bench(f"{{all: {{timer_migration: {other}}}, dut: {{mtu: 9000}}}}")
    ended = nicbench(*command, written)
    assert ended.status == 0
    assert "would be changed" in ended.stdout
    assert "mtu (dut): for the lab's own ports: known once the lab is created" in ended.stdout
    assert "nothing was changed" in ended.stdout
    assert Path("/proc/sys/kernel/timer_migration").read_text() == before
    assert not list(Path().glob("runs/*"))


def test_what_cannot_be_set_is_told_with_the_status_of_a_refused_run(nicbench: Any) -> None:
    ended = nicbench("tune", bench("{all: {huge_pages: {pages: 1, node: 1000}}}"))
    assert ended.status == 3
    assert "huge_pages (local): this machine has no huge pages of 2048 KiB on a NUMA node 1000" in ended.stdout
    assert "1 cannot be set; a run would be refused" in ended.stdout


def test_a_profile_is_planned_with_its_reasons(nicbench: Any) -> None:
    ended = nicbench("tune", bench("{profile: low-latency}"), "--json")
    assert ended.status == 0
    rows = json.loads(ended.stdout)["settings"]
    assert {row["source"] for row in rows} == {"profile low-latency"}
    assert all(row["reason"] for row in rows if row["outcome"] in (None, "skipped"))


def test_a_bench_file_without_tuning_says_so(nicbench: Any) -> None:
    assert "nothing to tune" in nicbench("tune", bench("{}")).stdout


def test_of_what_a_run_makes_nothing_is_told_beforehand(nicbench: Any) -> None:
    Path("ports.yaml").write_text("""\
nicbench: 1
title: t
hosts:
  server: {kind: netns, namespace: nb-not-there, create: true}
  client: {kind: netns, namespace: nb-nor-there, create: true}
ports:
  s0: {host: server, device: e0, ip: 198.18.0.1/24}
  c0: {host: client, device: e1, ip: 198.18.0.2/24}
links: [c0 <-> s0]
dut: {kind: server}
tuning: {dut: {mtu: 9000}, clients: {mtu: 9000}}
tests: [{name: a, method: stream}]
""")
    ended = nicbench("tune", "ports.yaml")
    assert ended.status == 0
    for device, host in (("e0", "server"), ("e1", "client")):
        assert f"mtu ({host}, {device}): for what the run creates: known once it exists" in ended.stdout


# What a newcomer meets: help without the types of a programmer, one convention of options, errors with a next step.


def every_command() -> dict[str, Any]:
    """Each command, those of groups too, by its words."""
    found = {}
    for name, command in typer.main.get_command(make_whole_app()).commands.items():  # type: ignore[attr-defined]
        own = getattr(command, "commands", None)
        found |= {f"{name} {part}": one for part, one in own.items()} if own else {name: command}
    return found


@pytest.mark.parametrize("name", ["", *COMMANDS, "lab up", "reference import"])
def test_the_help_of_a_flag_shows_no_type(name: str, nicbench: Any) -> None:
    ended = nicbench(*name.split(), "--help")
    assert ended.status == 0
    assert "--help" in ended.stdout
    assert "bool" not in ended.stdout


def test_the_same_option_is_the_same_thing_in_every_command() -> None:
    for name, command in every_command().items():
        options = {word: one for one in command.params for word in one.opts if word.startswith("--")}
        assert "--output" not in options, name
        if "--runs" in options:
            assert options["--runs"].help == "The folder that holds the runs.", name


def test_the_old_names_of_options_still_work(nicbench: Any, run_is: Any, finished_run: Any) -> None:
    run_is(finished_run)
    assert nicbench("run", "bench.yaml", "--output", "old").status == 0
    assert len(list(Path("old").iterdir())) == 1
    assert nicbench("list", "--output=old").status == 0
    assert nicbench("export", "latest", "--runs", "old", "--to", "json", "--output", "old.json").status == 0
    assert Path("old.json").exists()
    assert rename_old("lab", ["shell", "--", "ls", "--output"]) == ["shell", "--", "ls", "--output"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("rnu", "bench.yaml"), "Did you mean 'run'?"),
        (("run",), "Missing argument 'BENCH.yaml'. The bench file."),
        (("check", "latest"), "Missing option '--against'. The run to compare with"),
        (("report", "latest", "--layout", "short"), "'short' is not one of 'study', 'datasheet'"),
        (("report", "latest", "--logo", "none.png"), "none.png: No such file or directory next: name a PNG"),
        (("report", "latest", "--logo", "bench.yaml"), "bench.yaml: is not a PNG next: convert it"),
        (("run", "none.yaml"), "`nicbench init` writes one, `nicbench demo` runs one"),
        (("run", "."), "is a folder, not a bench file"),
        (("report", "bench.yaml"), "`nicbench run bench.yaml` makes a run of a bench file"),
        (("report", "none"), "there is no such folder next: `nicbench list` shows the runs"),
        (("web", "none"), "`nicbench run BENCH.yaml` or `nicbench demo` makes one"),
        (("run", "bench.yaml", "--wait", "soon"), "write it like 90s or 10min"),
        (("list", "--since", "yesterday"), "write it like 2026, 2026-01 or 2026-01-31"),
        (("export", "latest", "--to", "exel"), "it is one of badge, csv, json"),
        (("reference", "show", "connectx5"), "did you mean"),
        (("demo", "simulate"), "did you mean `simulated`?"),
        (("lab", "shell"), "make one: nicbench lab up BENCH.yaml"),
        (("import", "none.csv", "--method", "throughput"), "none.csv"),
        (("run", "bench.yaml", "--runs", "bench.yaml"), "give --runs a folder"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_wrong_command_says_what_to_write(
    arguments: tuple[str, ...], said: str, nicbench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nicbench.cli.commands.lab.find_kept_runs", list)
    ended = nicbench(*arguments)
    shown = " ".join(ended.stderr.replace("│", " ").split())
    assert ended.status == 2
    assert said in shown
    assert "error," not in shown


def test_a_run_is_no_bench_file_and_a_folder_of_runs_is_no_run(nicbench: Any, run_is: Any, finished_run: Any) -> None:
    run_is(finished_run)
    assert nicbench("run", "bench.yaml").status == 0
    (folder,) = Path("runs").iterdir()
    (folder / "journal.ndjson").touch()
    shown = nicbench("run", str(folder)).stderr
    assert "is the folder of a run, not a bench file" in shown
    assert f"`nicbench resume {folder}` goes on with it" in shown
    assert f"name one of the 1 runs in it, such as {folder}" in nicbench("report", "runs").stderr


def test_a_table_says_by_which_options_it_can_be_imported(nicbench: Any) -> None:
    Path("mine.csv").write_text("Card,Ports,Frame size,Frame rate [Mpps]\nA,2x25GbE,64,10\nB,2x25GbE,64,11\n")
    assert "add --method throughput, whose columns it has" in nicbench("import", "mine.csv").stderr
    shown = nicbench("import", "mine.csv", "--method", "throughput").stderr
    assert "try it with: --configuration Card --column Ports=link" in shown or "--ignore Card" in shown
