"""What is said of clocks that follow the load, cores that sleep or are shared, and of the IOMMU."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.fakes import FakeHost, FakeProcess

from nicbench.core.errors import HostError
from nicbench.doctor.base import State
from nicbench.doctor.checks import adapters, cores

CPUS = "/sys/devices/system/cpu/"


def governors(*names: str) -> dict[str, str]:
    return {f"{CPUS}cpufreq/policy{number}/scaling_governor": name for number, name in enumerate(names)}


def test_a_governor_that_follows_the_load_is_named_with_the_command_that_ends_it() -> None:
    check = cores.judge_governor(governors("schedutil", "performance"))
    assert check.state is State.WARNING
    assert "performance, schedutil" in check.text
    assert check.mend_command == f"echo performance | tee {CPUS}cpu*/cpufreq/scaling_governor"
    assert cores.judge_governor(governors("performance", "performance")).state is State.OK
    assert "not set by this kernel" in cores.judge_governor({}).text


@pytest.mark.parametrize(
    ("switch", "value", "mend"),
    [
        ("intel_pstate/no_turbo", "0", f"echo 1 > {CPUS}intel_pstate/no_turbo"),
        ("intel_pstate/no_turbo", "1", None),
        ("cpufreq/boost", "1", f"echo 0 > {CPUS}cpufreq/boost"),
        ("cpufreq/boost", "0", None),
    ],
)
def test_turbo_is_a_promise_that_heat_ends(switch: str, value: str, mend: str | None) -> None:
    check = cores.judge_turbo({f"{CPUS}{switch}": value})
    assert check.mend_command == mend
    assert check.state is (State.WARNING if mend else State.OK)


# A Skylake server by intel_idle; the second CPU has C6 disabled.
SKYLAKE = {
    f"{CPUS}cpu{cpu}/cpuidle/state{number}/{name}": value
    for cpu in (0, 1)
    for number, (title, latency) in enumerate((("POLL", "0"), ("C1", "2"), ("C1E", "10"), ("C6", "133")))
    for name, value in (("name", title), ("latency", latency), ("disable", "1" if (cpu, title) == (1, "C6") else "0"))
}


def test_a_deep_sleep_is_named_with_the_time_it_takes_to_wake() -> None:
    check = cores.judge_idle_states(SKYLAKE)
    assert check.state is State.WARNING
    assert "C6 (133 µs)" in check.text
    assert "C1E" not in check.text
    assert check.mend_command == f"echo 1 | tee {CPUS}cpu*/cpuidle/state3/disable"


def test_a_sleep_that_is_disabled_everywhere_is_none() -> None:
    disabled = {path: "1" if path.endswith("disable") else value for path, value in SKYLAKE.items()}
    assert cores.judge_idle_states(disabled).state is State.OK
    assert "virtual machine's host" in cores.judge_idle_states({}).text
    assert cores.judge_idle_states({f"{CPUS}cpu0/cpuidle/state1/latency": "?"}).state is State.OK


def test_cores_to_set_aside_are_named_with_the_boot_parameters() -> None:
    check = cores.judge_isolated_cores(tuple(range(8)), (), (), (0, 1))
    assert check.state is State.WARNING
    assert "isolcpus=6-7 nohz_full=6-7 rcu_nocbs=6-7" in (check.mend_command or "")
    few = cores.judge_isolated_cores((0, 1), (), (), (0, 1))
    assert (few.state, few.mend_command) == (State.OK, None)


def test_isolated_cores_on_which_nothing_is_measured_help_nobody() -> None:
    check = cores.judge_isolated_cores(tuple(range(8)), (6, 7), (6, 7), (0, 1))
    assert check.state is State.WARNING
    assert "measure on 0-1" in check.text
    assert check.mend_command == "taskset --cpu-list 6-7 nicbench run BENCH.yaml"
    assert cores.judge_isolated_cores(tuple(range(8)), (6, 7), (6, 7), (6, 7)).state is State.OK
    ticking = cores.judge_isolated_cores(tuple(range(8)), (6, 7), (), (6, 7))
    assert "the timer ticks" in ticking.text


def test_cores_of_which_only_some_are_isolated_are_not_isolated() -> None:
    check = cores.judge_isolated_cores(tuple(range(8)), (6, 7), (6, 7), (5, 6))
    assert check.state is State.WARNING
    assert "measure on 5, where other tasks run" in check.text
    assert check.mend_command == "taskset --cpu-list 6-7 nicbench run BENCH.yaml"


def test_one_isolated_core_is_not_enough_for_tester_and_dut() -> None:
    check = cores.judge_isolated_cores(tuple(range(8)), (7,), (7,), (0, 7))
    assert "measure on 0, where other tasks run" in check.text
    assert "isolcpus=6-7 " in (check.mend_command or "")
    alone = cores.judge_isolated_cores((0, 1), (1,), (1,), (0, 1))
    assert (alone.state, alone.mend_command) == (State.WARNING, None)


async def test_the_cores_that_are_to_be_isolated_are_those_of_tester_and_dut() -> None:
    host = FakeHost(files={f"{CPUS}online": "0-7\n", f"{CPUS}isolated": "5,7\n", f"{CPUS}nohz_full": "5,7\n"})
    host.files["/proc/self/status"] = "Cpus_allowed_list:\t5-7\n"
    siblings = "/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list:{}\n"
    host.answer("sh -c", siblings.format(5, "5-6") + siblings.format(6, "5-6") + siblings.format(7, "4,7"))
    (check,) = await cores.IsolatedCores().examine(host)
    assert check.state is State.OK  # 6 is for everything else
    assert "nicbench measures on 5,7" in check.text


def test_lists_of_cpus_in_the_kernels_words() -> None:
    assert cores.parse_listed("2-3,6\n") == (2, 3, 6)
    assert cores.parse_listed(" (null)\n") == cores.parse_listed("\n") == ()


def test_without_an_iommu_the_words_to_boot_with_are_named() -> None:
    intel = adapters.judge_iommu([], 2, adapters.INTEL, virtual=False)
    assert intel.state is State.WARNING
    assert "VT-d" in intel.text
    assert "intel_iommu=on iommu=pt" in (intel.mend_command or "")
    assert "AMD-Vi" in adapters.judge_iommu([], 2, adapters.AMD, virtual=False).text
    assert adapters.judge_iommu([], 0, adapters.INTEL, virtual=False).state is State.OK
    assert "QEMU" in adapters.judge_iommu([], 1, adapters.INTEL, virtual=True).text


def test_an_iommu_that_translates_for_the_kernels_drivers_costs_rate() -> None:
    assert adapters.judge_iommu(["DMA-FQ", "identity"], 2, adapters.INTEL, virtual=False).state is State.WARNING
    assert adapters.judge_iommu(["identity"] * 9, 2, adapters.INTEL, virtual=False).state is State.OK


def test_on_arm64_it_is_the_smmu_with_parameters_of_its_own() -> None:
    cpuinfo = (Path(__file__).parents[1] / "system" / "inventory" / "golden" / "cpuinfo_arm.txt").read_text()
    arm = adapters.platform_of(cpuinfo)
    lacking, translating = (adapters.judge_iommu(types, 2, arm, virtual=False) for types in ([], ["DMA-FQ"]))
    assert "switch the SMMU on" in lacking.text
    for check in (lacking, translating):
        assert "iommu.passthrough=1" in (check.mend_command or "")
        assert "iommu=pt" not in (check.mend_command or "")
    assert "smmuv3" in adapters.judge_iommu([], 1, arm, virtual=True).text
    assert "iommu.passthrough=1" in adapters.judge_iommu(["identity"], 2, arm, virtual=False).text
    assert adapters.platform_of("vendor_id\t: GenuineIntel\n") is adapters.INTEL


ANSWER = '{"cpus":[{"cpu":0,"looks":200,"slow":3},{"cpu":1,"looks":200,"slow":190}]}'
STAT = "cpu  1 0 1 8 0 0 0 0 0 0\ncpu0 {busy} 0 0 90 0 0 0 {steal} 0 0\ncpu10 7 0 0 0 0 0 0 999 0 0\n"


def test_a_neighbour_is_seen_by_the_looks_that_found_the_core_slow() -> None:
    check = cores.judge_neighbours(cores.parse_looks(ANSWER), 0.0)
    assert check.state is State.WARNING
    assert "2 % of 200 samples of CPU 0, 95 % of 200 samples of CPU 1" in check.text
    assert "`disturbed`" in check.text
    assert cores.judge_neighbours(cores.parse_looks(ANSWER)[:1], 0.0).state is State.OK


def test_time_that_a_hypervisor_takes_now_counts_as_well() -> None:
    steal = cores.stolen_ratio(STAT.format(busy=10, steal=0), STAT.format(busy=90, steal=20), (0,))
    assert steal == 0.2
    check = cores.judge_neighbours(cores.parse_looks(ANSWER)[:1], steal)
    assert check.state is State.WARNING
    assert "took 20.0 % of their time" in check.text
    assert cores.stolen_ratio("", "cpu0 1", (0,)) is None


@pytest.mark.parametrize("line", ["", "{}", "[]", '{"cpus":[{"cpu":"x"}]}', '{"cpus":3}'])
def test_an_answer_that_is_none_is_an_error_of_the_host(line: str) -> None:
    with pytest.raises(HostError, match="measure sharing"):
        cores.parse_looks(line)


def test_where_nobody_could_look_nothing_is_claimed() -> None:
    assert (
        "could not be sampled"
        in cores.judge_neighbours(cores.parse_looks('{"cpus":[{"cpu":0,"looks":0,"slow":0}]}'), None).text
    )


async def test_the_looks_of_the_warm_up_are_not_counted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    binary = tmp_path / "nicbench-packets"
    binary.touch(0o755)
    monkeypatch.setenv("NICBENCH_ENGINE_DIR", str(tmp_path))
    monkeypatch.setattr(cores, "_WARM_UP_S", 0.0)
    monkeypatch.setattr(cores, "_LOOK_S", 0.0)
    host = FakeHost(files={"/proc/self/status": "Cpus_allowed_list:\t4-7\n"})
    quiet = '{"cpus":[{"cpu":4,"looks":200,"slow":0},{"cpu":5,"looks":200,"slow":1}]}'
    host.process(f"{binary} measure sharing 4 5", FakeProcess([ANSWER, ANSWER, quiet]))
    (check,) = await cores.Neighbours().examine(host)
    assert check.state is State.OK
    assert "0 % of 200 samples of CPU 4, 0 % of 200 samples of CPU 5" in check.text


async def test_without_the_engine_nobody_can_look(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NICBENCH_ENGINE_DIR", str(tmp_path))
    (check,) = await cores.Neighbours().examine(FakeHost())
    assert (check.state, check.mend_command) == (State.WARNING, "make install")
    assert "cannot be looked for" in check.text


async def test_a_machine_that_says_nothing_has_no_warning_of_power() -> None:
    for examination in (cores.CoreClock(), cores.IdleStates(), cores.IsolatedCores()):
        assert {check.state for check in await examination.examine(FakeHost())} == {State.OK}
