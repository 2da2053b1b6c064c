"""What a management controller tells by Redfish: BIOS settings and power."""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
import logging
import shutil
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from tests.commands import run_captured
from tests.fakes import FakeHost
from tests.system.redfish._bmc import GOLDEN, PASSWORD, USER, Bmc, resources, serving

from nicbench.compare.run_differences import importance_of, is_identity
from nicbench.core.plan import Outcome
from nicbench.core.redaction import Redactor
from nicbench.report.system_table import system_table
from nicbench.system.inventory.base import REASONS, collect_host
from nicbench.system.redfish.answers import RedfishError, group_of
from nicbench.system.redfish.client import LARGEST_ANSWER_BYTES
from nicbench.system.redfish.readings import PowerOfSystem, bios_settings, parse_chassis, parse_chassis_of_system
from nicbench.tuning.items.adapter import BiosSettings, BiosSettingsOptions
from nicbench.tuning.setting import Place
from nicbench.tuning.tune import PlacedRequest, TuningRequest, preview

# BIOS settings from a controller that really serves them, and from one that does not as it should.

BIOS = "/redfish/v1/Systems/System.Embedded.1/Bios"
SYSTEMS = "/redfish/v1/Systems"


@pytest.fixture
def bmc() -> Iterator[Bmc]:
    with serving(Bmc(resources("idrac"))) as served:
        yield served


@pytest.mark.parametrize(
    ("maker", "first", "some", "waiting"),
    [
        ("idrac", "SysProfile", {"ProcCStates": "Disabled", "LogicalProc": "Enabled"}, {"SubNumaCluster": "2-Way"}),
        ("ilo", "WorkloadProfile", {"ProcHyperthreading": "Disabled"}, {"ProcHyperthreading": "Enabled"}),
        ("openbmc", "CbsCmnCpuGlobalCstateCtrl", {"SriovSupport": True, "MaxPayload": 512}, {}),
        ("supermicro", "PowerTechnology#00A1", {"SNC#0105": "Disable"}, {}),
    ],
)
async def test_settings_of_each_maker_are_read_those_that_matter_first(
    maker: str, first: str, some: dict[str, Any], waiting: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(Bmc(resources(maker))) as served:
        found = await bios_settings(served.controller(monkeypatch))
        assert {method for method, _ in served.seen} == {"GET"}
    names = list(found["attributes"])
    assert names[0] == first
    matter = [group_of(name) is not None for name in names]
    assert matter == sorted(matter, reverse=True)
    assert found["attributes"].items() >= some.items()
    assert found["pending"] == waiting
    assert found["machine"]["bios_version"]
    assert not [name for name in names if "assword" in name or "Admin" in name or "SerialNumber" in name]


async def test_tls_is_verified_by_the_file_of_verify(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed: no certificate can be made")
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    make = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
    names = ["-subj", "/CN=bmc", "-addext", "subjectAltName=IP:127.0.0.1"]
    run_captured([*make, *names, "-keyout", key, "-out", certificate])
    both = tmp_path / "both.pem"
    both.write_text(key.read_text() + certificate.read_text())
    with serving(Bmc(resources("idrac")), both) as served:
        trusting = served.controller(monkeypatch, verify=str(certificate))
        assert (await bios_settings(trusting))["attributes"]["SysProfile"] == "PerfOptimized"
        with pytest.raises(RedfishError, match="certificate is not trusted: it is self-signed"):
            await bios_settings(served.controller(monkeypatch))


async def test_a_wrong_password_is_said_and_never_shown(bmc: Bmc, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RedfishError, match="refuses the user or the password") as caught:
        await bios_settings(bmc.controller(monkeypatch, password="hunter2"))
    assert "hunter2" not in str(caught.value)
    assert len(bmc.seen) == 1, "asked again with a password that was refused: an account may be locked"


async def test_a_silent_controller_is_given_up(bmc: Bmc, monkeypatch: pytest.MonkeyPatch) -> None:
    released = threading.Event()
    bmc.special[BIOS] = lambda _request: released.wait(20) and None
    with pytest.raises(RedfishError, match="does not answer within"):
        await bios_settings(bmc.controller(monkeypatch), patience_s=0.5)
    released.set()


async def test_an_answer_without_end_is_cut_off(bmc: Bmc, monkeypatch: pytest.MonkeyPatch) -> None:
    def endless(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.end_headers()
        for _ in range(2 * LARGEST_ANSWER_BYTES >> 16):
            request.wfile.write(b" " * (1 << 16))

    bmc.special[BIOS] = endless
    with pytest.raises(RedfishError, match="over 4 MiB"):
        await bios_settings(bmc.controller(monkeypatch))


@pytest.mark.parametrize("garbage", ["", "<html>", "[]", "[" * 100_000, '{"Members": 1', "\0" * 100])
@pytest.mark.parametrize("where", ["/redfish/v1/", SYSTEMS, BIOS])
async def test_garbage_is_an_error_that_does_not_repeat_it(
    bmc: Bmc, monkeypatch: pytest.MonkeyPatch, where: str, garbage: str
) -> None:
    bmc.answers[where] = garbage
    with pytest.raises(RedfishError, match="no JSON of Redfish"):
        await bios_settings(bmc.controller(monkeypatch))


async def test_a_redirect_is_followed_within_the_host_alone(bmc: Bmc, monkeypatch: pytest.MonkeyPatch) -> None:
    def to(url: str) -> None:
        def answer(request: BaseHTTPRequestHandler) -> None:
            request.send_response(308)
            request.send_header("Location", url)
            request.send_header("Content-Length", "0")
            request.end_headers()

        bmc.special[BIOS] = answer

    bmc.answers["/redfish/v1/moved"] = bmc.answers[BIOS]
    to("/redfish/v1/moved")
    assert (await bios_settings(bmc.controller(monkeypatch)))["attributes"]["BootMode"] == "Uefi"
    with serving(Bmc(resources("idrac"))) as other:
        for elsewhere in (f"{other.url}{BIOS}", "file:///etc/passwd"):
            to(elsewhere)
            with pytest.raises(RedfishError):
                await bios_settings(bmc.controller(monkeypatch))
        assert other.seen == []


async def test_a_circle_of_redirects_is_left(bmc: Bmc, monkeypatch: pytest.MonkeyPatch) -> None:
    def round_again(request: BaseHTTPRequestHandler) -> None:
        request.send_response(302)
        request.send_header("Location", BIOS)
        request.send_header("Content-Length", "0")
        request.end_headers()

    bmc.special[BIOS] = round_again
    with pytest.raises(RedfishError, match="answers with HTTP 302"):
        await bios_settings(bmc.controller(monkeypatch))


async def test_a_proxy_of_the_environment_never_sees_the_password(bmc: Bmc, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")  # nobody listens there
    assert (await bios_settings(bmc.controller(monkeypatch)))["attributes"]


async def test_the_password_is_in_no_log(
    bmc: Bmc, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    assert (await bios_settings(bmc.controller(monkeypatch)))["attributes"]
    assert PASSWORD not in caplog.text
    assert base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode() not in caplog.text


_AUTHORIZATION = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()


@pytest.mark.parametrize(
    "echo",
    [
        PASSWORD,
        f"you sent {PASSWORD}, thank you",
        f"Basic {_AUTHORIZATION}",
        base64.b64encode(f"Authorization: {USER}:{PASSWORD}".encode()).decode(),
        _AUTHORIZATION.replace("+", "-").replace("/", "_").rstrip("="),
        PASSWORD.encode().hex(),
        PASSWORD.encode().hex().upper(),
        quote(PASSWORD),
        "\u200b".join(PASSWORD),
    ],
)
async def test_a_controller_that_sends_the_password_back_gets_it_nowhere(
    echo: str, bmc: Bmc, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = json.loads(bmc.answers[BIOS])
    content["Attributes"] |= {"SysProfile": echo, echo: "Enabled"}
    bmc.answers[BIOS] = json.dumps(content)
    facts = await collect_host(FakeHost(), (), controller=bmc.controller(monkeypatch))
    told = json.dumps(facts)
    assert "(redacted)" in told
    hidden = _AUTHORIZATION.rstrip("=")[:-1]  # the last letter depends on what follows
    assert not [form for form in (PASSWORD, quote(PASSWORD), hidden, PASSWORD.encode().hex()) if form in told]
    assert PASSWORD.encode().hex().upper() not in told
    assert echo not in told


@pytest.mark.parametrize(
    "sent", [b"SSH-2.0-OpenSSH_9.2\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort", b""]
)
async def test_what_is_no_http_is_told(sent: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(sent)
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        bmc = Bmc({})
        bmc.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        with pytest.raises(RedfishError, match=r"does not speak HTTP|cannot be reached"):
            await bios_settings(bmc.controller(monkeypatch))


async def test_nobody_listens_is_told_in_the_systems_words(bmc: Bmc, monkeypatch: pytest.MonkeyPatch) -> None:
    bmc.url = "http://127.0.0.1:1"
    with pytest.raises(RedfishError, match="cannot be reached: Connection refused") as caught:
        await bios_settings(bmc.controller(monkeypatch))
    assert "127.0.0.1" not in str(caught.value)
    bmc.url = "https://no-such-controller.invalid"
    with pytest.raises(RedfishError, match=r"cannot be reached|does not answer") as caught:
        await bios_settings(bmc.controller(monkeypatch))
    assert "no-such-controller" not in str(caught.value)


async def test_a_compressed_answer_is_not_unpacked(bmc: Bmc, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four kilobytes of it could be four megabytes."""

    def bomb(request: BaseHTTPRequestHandler) -> None:
        assert request.headers["Accept-Encoding"] == "identity"
        request.send_response(200)
        request.send_header("Content-Encoding", "gzip")
        request.end_headers()
        request.wfile.write(gzip.compress(bytes(8 * LARGEST_ANSWER_BYTES)))

    bmc.special[BIOS] = bomb
    with pytest.raises(RedfishError, match="no text"):
        await bios_settings(bmc.controller(monkeypatch))


async def test_a_link_to_elsewhere_is_no_link(bmc: Bmc, monkeypatch: pytest.MonkeyPatch) -> None:
    for link in ("http://example.com/redfish/v1", "//example.com/redfish", "/redfish/../etc", "/redfish/v1/a b"):
        bmc.answers[SYSTEMS] = json.dumps({"Members": [{"@odata.id": link}]})
        with pytest.raises(RedfishError, match="has no system"):
            await bios_settings(bmc.controller(monkeypatch))


async def test_of_several_systems_one_must_be_named(bmc: Bmc, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("System.Embedded.1", "Blade2", "BQWL81200123")
    bmc.answers[SYSTEMS] = json.dumps({"Members": [{"@odata.id": f"{SYSTEMS}/{name}"} for name in names]})
    listed = r"System.Embedded.1, Blade2, BQ\.\.\.23"
    with pytest.raises(RedfishError, match=rf"has 3 systems \({listed}\): name one with `system`"):
        await bios_settings(bmc.controller(monkeypatch))
    with pytest.raises(RedfishError, match=f"no system of the name in `system`; it has {listed}"):
        await bios_settings(bmc.controller(monkeypatch, system="Blade3"))
    assert (await bios_settings(bmc.controller(monkeypatch, system="System.Embedded.1")))["attributes"]


async def test_a_password_file_that_others_may_read_is_refused(
    bmc: Bmc, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "password"
    file.write_text(f"{PASSWORD}\n")
    controller = bmc.controller(monkeypatch, password_env=None, password_file=str(file))
    file.chmod(0o640)
    with pytest.raises(RedfishError, match=r"can be used by others \(mode 0640\)"):
        await bios_settings(controller)
    file.chmod(0o600)
    assert (await bios_settings(controller))["attributes"]
    file.unlink()
    with pytest.raises(RedfishError, match="cannot be read: No such file"):
        await bios_settings(controller)


async def test_the_inventory_tells_them_or_why_not(bmc: Bmc, monkeypatch: pytest.MonkeyPatch) -> None:
    facts = await collect_host(FakeHost(), (), controller=bmc.controller(monkeypatch))
    assert facts["bios_settings"]["attributes"]["SysProfile"] == "PerfOptimized"
    wrong = await collect_host(FakeHost(), (), controller=bmc.controller(monkeypatch, password="hunter2"))
    assert wrong["bios_settings"] is None
    assert "401" in wrong[REASONS]["bios_settings"]
    unset = bmc.controller(monkeypatch)
    monkeypatch.delenv("BMC_PASSWORD")
    assert "BMC_PASSWORD" in (await collect_host(FakeHost(), (), controller=unset))[REASONS]["bios_settings"]
    assert "names no management controller" in (await collect_host(FakeHost(), ()))[REASONS]["bios_settings"]
    for told in (facts, wrong):
        assert PASSWORD not in json.dumps(told)
        assert "hunter2" not in json.dumps(told)
        assert "127.0.0.1" not in json.dumps(told)


async def test_the_report_shows_those_that_matter(bmc: Bmc, monkeypatch: pytest.MonkeyPatch) -> None:
    facts = await collect_host(FakeHost(), (), controller=bmc.controller(monkeypatch))
    row = next(row for row in system_table({"tester": facts}).rows if row.label == "BIOS settings")
    assert row.texts[0].startswith("workload profile: SysProfile PerfOptimized; power: ProcPwrPerf MaxPerf")
    assert "pending until a reboot: SubNumaCluster 2-Way" in row.texts[0]
    assert "EmbSata" not in row.texts[0]


@pytest.mark.parametrize("maker", ["idrac", "ilo", "openbmc", "supermicro"])
async def test_redaction_takes_what_names_the_machine(maker: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(Bmc(resources(maker))) as served:
        found = await bios_settings(served.controller(monkeypatch))
    named = [value for values in found["identity"].values() for value in values]
    assert named
    redacted = json.dumps(Redactor()({"tester": {"bios_settings": found}}))
    assert not [value for value in named if value in redacted]


def test_a_bios_setting_stands_near_the_top_of_a_diff() -> None:
    assert importance_of("inventory.bios_settings.attributes.SubNumaCluster").why == "a BIOS setting"
    assert (
        importance_of("inventory.bios_settings.attributes.SubNumaCluster").rank
        < importance_of("inventory.core_clock_policy.governor").rank
    )
    assert is_identity("inventory.bios_settings.identity.serials")


async def test_expected_settings_are_checked_and_pending_ones_are_said(
    bmc: Bmc, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def outcome(controller: Any = None, **expected: Any) -> Any:
        options = BiosSettingsOptions(expected=expected)
        place = Place(FakeHost(), controller=controller)
        return await preview(
            PlacedRequest(TuningRequest("tester", BiosSettings, options), BiosSettings(options), place)
        )

    controller = bmc.controller(monkeypatch)
    assert (await outcome(controller, ProcCStates="Disabled")).outcome is Outcome.MET
    row = await outcome(controller, SubNumaCluster="2-Way", Unheard="x")
    assert row.outcome is Outcome.NOT_MET
    assert row.before == {"SubNumaCluster": "Disabled (pending until a reboot: 2-Way)", "Unheard": "not listed"}
    row = await outcome(ProcCStates="Disabled")
    assert (row.outcome, row.reason) == (
        Outcome.FAILED,
        "the bench file names no management controller of this host (`redfish`)",
    )
    assert PASSWORD not in row.model_dump_json()


# What a system draws, by its management controller: the resource is found once, and read again and again.


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
