"""Rounds between the hosts of a testbed (``workloads.play``), and the counters of their interfaces."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from nicbench.errors import NicbenchError
from nicbench.hosts._sections import in_sections, sections
from nicbench.labs.base import Endpoint, EndpointTestbed
from nicbench.model.round import JobOutcome, RoundRequest
from nicbench.redaction import Redactor
from nicbench.rounds.base import Player
from nicbench.rounds.counters import SCRIPT, counters_in
from nicbench.rounds.files import RoundFiles
from nicbench.rounds.interrupts import Interrupts
from nicbench.tuning.changes import Changes
from nicbench.workloads.base import End, Watch
from nicbench.workloads.play import play
from nicbench.workloads.programs import Programs
from nicbench.workloads.raw import RawFolder

_TIMEOUT_S: Final = 10.0


class HostPlayer(Player):
    """See the module; what tools wrote is kept under ``raw`` of the run folder.

    ``redactor`` takes what identifies a machine out of their outputs, command lines and failures.
    """

    def __init__(
        self, testbed: EndpointTestbed, folder: Path, changes: Changes, redactor: Redactor | None = None
    ) -> None:
        self._redactor = redactor
        self._testbed = testbed
        self._folder = folder
        self._files = RoundFiles(changes)
        self._programs = Programs()
        self._interrupts = Interrupts(changes)
        self._ends = {name: _end(each) for name, each in testbed.endpoints.items()}

    async def play(self, number: int, request: RoundRequest, watch: Watch) -> tuple[JobOutcome, ...]:
        raw = RawFolder(self._folder, f"r{number:04d}", self._redactor.text if self._redactor else None)
        outcomes = await play(request, self._ends, raw, programs=self._programs, watch=watch)
        if any(outcome.failure is not None for outcome in outcomes):
            await self._require_hosts()
        if self._redactor is None:
            return outcomes
        return tuple(JobOutcome.model_validate(self._redactor(each.model_dump(mode="json"))) for each in outcomes)

    async def _require_hosts(self) -> None:
        """HostError where a job failed because a host is gone: nothing could be measured any more.

        The round is not kept, so that a resumed run plays it again.
        """
        for test_host in self._testbed.test_hosts:
            await test_host.host.run(("true",), check=False, timeout_s=_TIMEOUT_S)

    async def make_file(self, endpoint: str, folder: str, purpose: str, size_bytes: int, *, filled: bool) -> str:
        host = self._testbed.endpoints[endpoint].host
        return await self._files.make(host, folder, f"{endpoint}-{purpose}", size_bytes, filled=filled)

    async def remove_file(self, endpoint: str, path: str) -> None:
        await self._files.remove(self._testbed.endpoints[endpoint].host, path)

    async def steer_interrupts(self, endpoint: str, cpus: tuple[int, ...] | None) -> None:
        end = self._testbed.endpoints[endpoint]
        await self._interrupts.steer(end.host, str(end.facts.device), cpus)

    async def counters(self) -> dict[str, dict[str, int]]:
        """One command a host; a host that does not answer is left out."""
        found: dict[str, dict[str, int]] = {}
        for test_host in self._testbed.test_hosts:
            ends = [end for end in self._testbed.endpoints.values() if end.host is test_host.host]
            scripts = {end.name: SCRIPT.format(device=end.facts.device) for end in ends if end.facts.device}
            try:
                done = await test_host.host.network.run(
                    ("sh", "-c", in_sections(scripts)), check=False, timeout_s=_TIMEOUT_S
                )
            except NicbenchError:
                continue
            found.update({name: counters_in(text) for name, text in sections(done.stdout).items()})
        return found


def _end(each: Endpoint) -> End:
    facts = each.facts
    return End(
        host=each.host,
        address=facts.address,
        device=facts.device,
        link_bits_per_s=facts.link_bits_per_s,
        rdma_device=each.rdma_device,
    )
