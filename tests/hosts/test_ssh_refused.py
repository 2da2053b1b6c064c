"""Why a host cannot be reached by ssh: each reason in words, with the next step; no host key is ever taken on trust."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import asyncssh
import pytest
from pydantic import ValidationError

from nicbench.core.errors import NicbenchError, NotReadyError
from nicbench.hosts import close_connections
from nicbench.hosts.kinds.ssh import SshHost
from nicbench.hosts.options import SshOptions

from .sshd_server import Server


async def _refusal(host: SshHost) -> NicbenchError:
    with pytest.raises(NotReadyError) as caught:
        await host.run(("true",))
    assert caught.value.place == "client1"
    return caught.value


def _fingerprint(key: Path) -> str:
    shown = subprocess.run(("ssh-keygen", "-lf", key), check=True, capture_output=True, text=True)
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
    told: list[str] = []
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
    subprocess.run(("ssh-keygen", "-q", "-p", "-P", "", "-N", "secret", "-f", tmp_path / "locked"), check=True)
    error = await _refusal(sshd.host(key=str(tmp_path / "locked")))

    assert "ssh-add" in str(error.next_step)


async def test_a_proxy_command_that_ends_is_told_of(sshd: Server) -> None:
    error = await _refusal(sshd.host(proxy_command=["false"]))

    assert "ssh to" in error.message
    assert "ProxyCommand=false" in str(error.next_step)


async def test_a_host_that_never_answers_is_given_up(sshd: Server) -> None:
    error = await _refusal(sshd.host(proxy_command=["sleep", "60"], connect_timeout=0.5))

    assert "no answer within 0.5 s" in error.message


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
