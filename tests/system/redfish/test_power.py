"""What a system draws, by its management controller: the resource is found once, and read again and again."""

from __future__ import annotations

import json

import pytest

from nicbench.system.redfish.answers import RedfishError
from nicbench.system.redfish.readings import PowerOfSystem, parse_chassis, parse_chassis_of_system

from ._bmc import GOLDEN, Bmc, resources, serving


def with_power(maker: str) -> dict[str, str]:
    """The maker's answers, with the chassis of the system and its power."""
    (chassis,) = parse_chassis_of_system((GOLDEN / maker / "system.json").read_text())
    text = (GOLDEN / maker / "chassis.json").read_text()
    (path,) = parse_chassis(text).paths
    return {**resources(maker), chassis: text, path: (GOLDEN / maker / "power.json").read_text()}


@pytest.mark.parametrize(
    ("maker", "resource", "watts"),
    [("idrac", "Power", 286.0), ("openbmc", "EnvironmentMetrics", 341.25)],
    ids=["Power", "EnvironmentMetrics"],
)
async def test_power_is_found_once_and_then_read_with_one_request(
    maker: str, resource: str, watts: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(Bmc(with_power(maker))) as bmc:
        system = PowerOfSystem(bmc.controller(monkeypatch))
        assert (await system.watts(), system.resource) == (watts, resource)
        bmc.seen.clear()
        assert await system.watts() == watts
        assert [path.rpartition("/")[2] for _, path in bmc.seen] == [resource]


async def test_a_chassis_with_several_systems_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = with_power("idrac")
    path = "/redfish/v1/Chassis/System.Embedded.1"
    chassis = json.loads(answers[path])
    chassis["Links"]["ComputerSystems"] *= 2
    with serving(Bmc({**answers, path: json.dumps(chassis)})) as bmc, pytest.raises(RedfishError, match="several sys"):
        await PowerOfSystem(bmc.controller(monkeypatch)).watts()


async def test_a_controller_without_power_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = {**with_power("idrac"), "/redfish/v1/Chassis/System.Embedded.1/Power": '{"PowerControl": []}'}
    with serving(Bmc(answers)) as bmc, pytest.raises(RedfishError, match="no power"):
        await PowerOfSystem(bmc.controller(monkeypatch)).watts()
