"""What was changed on a host by ssh is put back there without nicbench, when nothing is heard of it any more."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import asyncssh
import pytest
import pytest_asyncio
from pydantic import ValidationError
from tests.commands import run_captured, run_checked, run_tried
from tests.hosts.ending import machine_of, silence, until
from tests.hosts.sshd_server import Server

from nicbench.core.errors import NicbenchError, NotReadyError
from nicbench.hosts import close_connections
from nicbench.hosts.kinds.netns import NetnsHost
from nicbench.hosts.kinds.ssh import SshHost
from nicbench.hosts.options import SshOptions
from nicbench.testbed.interfaces.base import Making, Port
from nicbench.testbed.interfaces.namespaces import make_namespaces, move_interfaces
from nicbench.tuning.guards import folder_of
from nicbench.tuning.items.kernel import Sysctls
from nicbench.tuning.items.link import Mtu
from nicbench.tuning.items.queues import TransmitQueue
from nicbench.tuning.restore import restore
from nicbench.tuning.setting import Place
from nicbench.tuning.stack import UndoStack


@pytest.fixture
def values(tmp_path: Path) -> list[Path]:
    files = [tmp_path / name for name in ("one", "two", "three")]
    for file in files:
        file.write_text("old\n")
    return files


async def _changed(host: SshHost, runtime: Path, values: list[Path]) -> UndoStack:
    changes = UndoStack("run", None, runtime)
    for file in values:
        await changes.set_file(host, str(file), "new")
    return changes


async def test_a_host_that_hears_nothing_puts_its_values_back_and_the_undo_says_so(
    sshd: Server, tmp_path: Path, values: list[Path]
) -> None:
    host = sshd.host(lease=3.0)
    changes = await _changed(host, tmp_path / "run", values)
    folder = Path(folder_of(str(tmp_path / "run"), "run", host))
    record = json.loads((folder / "undo.json").read_text())
    assert [entry["host"] for entry in record["entries"]] == [{"kind": "local"}] * 3
    values[1].write_text("somebody's\n")
    async with silence(host):
        await until((folder / "undo.sh.done").exists)
        assert [file.read_text() for file in values] == ["old", "somebody's\n", "old"]
        await until(lambda: machine_of(host).lost is not None)
    said = await changes.undo_all()

    assert "was not in reach of nicbench for a while, and undid by itself: put back" in said[0]
    assert f"left alone, somebody changed it since: client1: {values[1]}, to 'old'" in said[0]
    assert "was left at" in said[1]
    assert not folder.exists()


async def test_a_host_that_is_closed_before_the_undo_leaves_the_undo_to_it(
    sshd: Server, tmp_path: Path, values: list[Path]
) -> None:
    host = sshd.host()
    changes = await _changed(host, tmp_path / "run", values)
    await host.close()

    assert await changes.undo_all() == []
    assert [file.read_text() for file in values] == ["old"] * 3


async def test_an_undo_in_order_leaves_nothing_to_the_script(sshd: Server, tmp_path: Path, values: list[Path]) -> None:
    host = sshd.host()
    changes = await _changed(host, tmp_path / "run", values)
    assert await changes.undo_all() == []
    assert not (tmp_path / "run").exists()
    await close_connections()

    assert [file.read_text() for file in values] == ["old"] * 3


async def test_restore_takes_the_script_of_a_dead_run_away_and_undoes_the_rest(
    sshd: Server, tmp_path: Path, values: list[Path]
) -> None:
    host = sshd.host()
    await _changed(host, tmp_path / "run", values)
    record = tmp_path / "run" / "run" / "undo.json"
    owned = json.loads(record.read_text())
    owned["owner"]["start_ticks"] += 1  # its process is gone
    record.write_text(json.dumps(owned))
    said = await restore("run", tmp_path / "run")

    assert said == ["run: undid 3 changes that it had left"]
    assert [file.read_text() for file in values] == ["old"] * 3
    assert not (tmp_path / "run").exists()


@pytest_asyncio.fixture
async def namespace() -> AsyncIterator[str]:
    name = f"nb-guard-{os.getpid()}"
    run_checked(("ip", "netns", "add", name))
    run_checked(("ip", "-n", name, "link", "add", "va", "type", "veth", "peer", "name", "vb"))
    # A new namespace has what the machine's own has, which others may have set.
    run_checked(("ip", "netns", "exec", name, "sysctl", "-q", "-w", "net.ipv4.ip_forward=0"))
    yield name
    with contextlib.suppress(subprocess.CalledProcessError):
        run_checked(("ip", "netns", "delete", name))


@pytest.mark.skipif(os.geteuid() != 0, reason="a namespace needs root")
async def test_settings_that_tools_make_are_put_back_too(sshd: Server, namespace: str, tmp_path: Path) -> None:
    host = NetnsHost(sshd.host(lease=3.0), namespace, "dut")
    changes = UndoStack("run", None, tmp_path / "run")
    sysctls = Sysctls(Sysctls.Options.model_validate({"values": {"net.ipv4.ip_forward": "1"}}))
    for item, device in (
        (Mtu(Mtu.Options(bytes=9000)), "va"),
        (TransmitQueue(TransmitQueue.Options(frames=50)), "vb"),
        (sysctls, None),
    ):
        place = Place(host, device)
        before = await item.read_checked(place)
        asked = item.target_values(before)
        await item.apply(changes, place, {key: before[key] for key in asked}, asked)
    assert await _settings(namespace) == ["9000", "50", "1"]
    run_checked(("ip", "-n", namespace, "link", "set", "vb", "txqueuelen", "77"))
    folder = Path(folder_of(str(tmp_path / "run"), "run", host.machine))
    # kill -9 of the controller is no other end of the connection than this.
    for pid in machine_of(host.machine).sshds:
        os.kill(pid, signal.SIGKILL)
    await until((folder / "undo.sh.done").exists)

    assert await _settings(namespace) == ["1500", "77", "0"]
    assert len(await changes.undo_all()) == 2


async def test_changes_that_are_kept_stay_when_the_connection_ends(
    sshd: Server, tmp_path: Path, values: list[Path]
) -> None:
    host = sshd.host()
    changes = await _changed(host, tmp_path / "run", values)
    folder = Path(folder_of(str(tmp_path / "run"), "run", host))
    await changes.keep()
    assert not (folder / "undo.sh").exists()
    assert json.loads((folder / "undo.json").read_text())["kept"]
    await close_connections()

    assert [file.read_text() for file in values] == ["new"] * 3
    assert await restore("run", tmp_path / "run") == ["run: undid 3 changes"]
    assert [file.read_text() for file in values] == ["old"] * 3
    assert not (tmp_path / "run").exists()


@pytest.fixture
def port() -> Iterator[str]:
    """An interface of this machine, up, with an address."""
    name = f"nbg{os.getpid()}"
    run_checked(("ip", "link", "add", name, "type", "veth", "peer", "name", f"{name}p"))
    run_checked(("ip", "address", "add", "198.19.79.1/24", "dev", name))
    run_checked(("ip", "link", "set", name, "up"))
    yield name
    subprocess.run(("ip", "link", "delete", name), check=False)


@pytest.mark.acceptance  # twenty seconds of waiting
@pytest.mark.skipif(os.geteuid() != 0, reason="a namespace needs root")
async def test_an_interface_that_was_moved_comes_back_by_itself(sshd: Server, port: str, tmp_path: Path) -> None:
    host = NetnsHost(sshd.host(lease=3.0), f"nb-moved-{os.getpid()}", "server")
    changes = UndoStack("run", None, tmp_path / "run")
    making = Making({"server": host}, {"s0": Port(host="server", device=port)}, changes, created=(host,))
    await make_namespaces(making)
    await move_interfaces(making)
    assert not _seen(port)
    folder = Path(folder_of(str(tmp_path / "run"), "run", host.machine))
    for pid in machine_of(host.machine).sshds:
        os.kill(pid, signal.SIGKILL)
    await until((folder / "undo.sh.done").exists)

    assert "198.19.79.1/24" in _seen(port)
    assert "UP" in _seen(port)
    assert not Path("/run/netns", host.namespace).exists()
    assert len(await changes.undo_all()) == 1


def _seen(device: str) -> str:
    shown = run_tried(("ip", "-o", "address", "show", "dev", device))
    flags = run_tried(("ip", "-o", "link", "show", "dev", device))
    return shown.stdout + flags.stdout


async def _settings(namespace: str) -> list[str]:
    script = "cat /sys/class/net/va/mtu /sys/class/net/vb/tx_queue_len /proc/sys/net/ipv4/ip_forward"
    command = ("ip", "netns", "exec", namespace, "sh", "-c", script)
    process = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
    return (await process.communicate())[0].decode().split()


# Why a host cannot be reached by ssh: each reason in words, with the next step; no host key is ever taken on trust.


async def _refusal(host: SshHost) -> NicbenchError:
    with pytest.raises(NotReadyError) as caught:
        await host.run(("true",))
    assert caught.value.place == "client1"
    return caught.value


def _fingerprint(key: Path) -> str:
    shown = run_captured(("ssh-keygen", "-lf", key))
    return shown.stdout.split()[1]


async def test_an_unknown_host_key_is_refused_with_its_fingerprint_and_the_command_that_accepts_it(
    sshd: Server, tmp_path: Path
) -> None:
    error = await _refusal(sshd.host(known_hosts=str(tmp_path / "none")))

    assert f"its host key is not known: ssh-ed25519 {_fingerprint(sshd.folder / 'host.pub')}" in error.message
    assert error.next_step is not None
    assert f"UserKnownHostsFile={tmp_path}/none -p 22" in error.next_step
    assert "sshd -i -f" in error.next_step


async def test_a_changed_host_key_is_refused_with_both_fingerprints(sshd: Server, tmp_path: Path) -> None:
    other = (sshd.folder / "other_host.pub").read_text()
    (tmp_path / "known").write_text(f"server {other}")
    error = await _refusal(sshd.host(known_hosts=str(tmp_path / "known")))

    assert "has CHANGED" in error.message
    for key in ("host.pub", "other_host.pub"):
        assert _fingerprint(sshd.folder / key) in error.message
    assert f"ssh-keygen -R server -f {tmp_path}/known" in str(error.next_step)


async def test_a_revoked_host_key_is_said_to_be_revoked_and_is_not_to_be_accepted(sshd: Server, tmp_path: Path) -> None:
    key = (sshd.folder / "host.pub").read_text()
    for known in (f"@revoked * {key}", f"@revoked server {key}\nserver {key}"):
        (tmp_path / "known").write_text(known)
        error = await _refusal(sshd.host(known_hosts=str(tmp_path / "known")))

        assert f"its host key is REVOKED: ssh-ed25519 {_fingerprint(sshd.folder / 'host.pub')}" in error.message
        assert "never accept this one" in str(error.next_step)


async def test_no_configuration_switches_the_check_of_host_keys_off(sshd: Server, tmp_path: Path) -> None:
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "config").write_text("Host *\nStrictHostKeyChecking no\nUserKnownHostsFile none\n")
    error = await _refusal(sshd.host(known_hosts=None))

    assert "its host key is not known" in error.message


async def test_known_hosts_and_user_of_the_ssh_configuration_are_honoured(sshd: Server, tmp_path: Path) -> None:
    user = sshd.options().user
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "config").write_text(
        f"Host alias\nHostName server\nUser {user}\nIdentityFile {sshd.folder}/user\n"
        f"UserKnownHostsFile {sshd.known_hosts}\n"
    )
    host = SshHost(SshOptions(address="alias", proxy_command=tuple(sshd.command())), "client1")

    assert (await host.run(("echo", "there"))).stdout == "there\n"


async def test_a_key_that_the_host_does_not_know_is_refused(sshd: Server) -> None:
    error = await _refusal(sshd.host(key=str(sshd.folder / "stranger")))

    assert "refused every key" in error.message
    assert "ssh-copy-id" in str(error.next_step)


class _AsksForPasswords(asyncssh.SSHServer):
    """A server that takes no key, and keeps what it is told in its place."""

    def __init__(self, told: list[str]) -> None:
        self._told = told

    def password_auth_supported(self) -> bool:
        return True

    def validate_password(self, username: str, password: str) -> bool:
        self._told.append(password)
        return False

    def kbdint_auth_supported(self) -> bool:
        return True

    def get_kbdint_challenge(self, username: str, lang: str, submethods: str) -> bool:
        self._told.append(submethods)
        return False


async def test_no_password_is_sent_whatever_the_ssh_configuration_says(sshd: Server, tmp_path: Path) -> None:
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "config").write_text(
        "Host *\nPasswordAuthentication yes\nKbdInteractiveAuthentication yes\n"
        "PreferredAuthentications keyboard-interactive,password\n"
    )
    told = []
    keys = [str(sshd.folder / "host")]
    async with asyncssh.listen(
        "127.0.0.1", 0, server_host_keys=keys, server_factory=lambda: _AsksForPasswords(told)
    ) as (listening):
        known = tmp_path / "known"
        known.write_text(f"[127.0.0.1]:{listening.get_port()} {(sshd.folder / 'host.pub').read_text()}")
        error = await _refusal(
            sshd.host(address="127.0.0.1", port=listening.get_port(), proxy_command=None, known_hosts=str(known))
        )

    assert "refused every key" in error.message
    assert told == []


async def test_a_key_file_that_is_not_there_is_named(sshd: Server, tmp_path: Path) -> None:
    assert "no-such-key" in (await _refusal(sshd.host(key=str(tmp_path / "no-such-key")))).message


async def test_a_key_with_a_passphrase_is_left_to_the_agent(sshd: Server, tmp_path: Path) -> None:
    shutil.copy(sshd.folder / "user", tmp_path / "locked")
    run_checked(("ssh-keygen", "-q", "-p", "-P", "", "-N", "secret", "-f", tmp_path / "locked"))
    error = await _refusal(sshd.host(key=str(tmp_path / "locked")))

    assert "ssh-add" in str(error.next_step)


async def test_a_proxy_command_that_ends_is_told_of(sshd: Server) -> None:
    error = await _refusal(sshd.host(proxy_command=["false"]))

    assert "ssh to" in error.message
    assert "ProxyCommand=false" in str(error.next_step)


async def test_a_host_that_never_answers_is_given_up(sshd: Server) -> None:
    error = await _refusal(sshd.host(proxy_command=["sleep", "60"], connect_timeout=0.5))

    assert "no answer within 0.5 s" in error.message


async def test_a_shell_that_never_answers_is_given_up(sshd: Server) -> None:
    """A start-up file that waits for something is one."""
    error = await _refusal(sshd.host(proxy_command=sshd.command("-o", "ForceCommand=sleep 60"), connect_timeout=2.0))

    assert "did not start a shell: silent for 2 s" in error.message


async def test_nothing_that_listens_is_told_as_that(sshd: Server) -> None:
    error = await _refusal(sshd.host(address="127.0.0.1", port=1, proxy_command=None))

    assert "nothing listens there" in error.message


async def test_a_name_that_nobody_knows_is_told_as_that(sshd: Server) -> None:
    error = await _refusal(sshd.host(address="no-such-host.invalid", proxy_command=None))

    assert "its name is not known" in error.message


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"address": "-oProxyCommand=x"}, "pattern"),
        ({"address": "a", "password": "x"}, "password"),
        ({"address": "a", "jump": "b", "proxy_command": ["c"]}, "one of them"),
        ({"address": "a", "lease": 1.0}, "lease"),
    ],
)
def test_options_that_cannot_be_are_refused(options: dict[str, object], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        SshOptions.model_validate(options)


async def test_a_key_that_the_agent_holds_is_enough_and_the_agent_stays_here(
    sshd: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    socket = str(tmp_path / "agent")
    agent = subprocess.Popen(("ssh-agent", "-D", "-a", socket), stdout=subprocess.DEVNULL)
    try:
        monkeypatch.setenv("SSH_AUTH_SOCK", socket)
        adding = ("ssh-add", "-q", sshd.folder / "user")
        while subprocess.run(adding, check=False, stderr=subprocess.DEVNULL).returncode:
            assert agent.poll() is None
        assert (await sshd.host(key=None).run(("echo", "there"))).stdout == "there\n"
        await close_connections()
        (tmp_path / ".ssh").mkdir()
        (tmp_path / ".ssh" / "config").write_text("Host *\nForwardAgent yes\n")
        asking = ("sh", "-c", 'echo "agent: $SSH_AUTH_SOCK"')
        assert (await sshd.host(key=None).run(asking)).stdout == "agent: \n", "the host must not use our keys"
        await close_connections()
    finally:
        agent.terminate()
        agent.wait()
