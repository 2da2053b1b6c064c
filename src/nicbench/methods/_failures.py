"""Bonds and failing links: what a method reports about the ports of a bond, and how it takes one of its links down."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from nicbench.core.bond import FlowSilence, LinkFailure
from nicbench.core.round import Round
from nicbench.core.table import Column
from nicbench.core.units import format_bits_per_s
from nicbench.methods._round_figures import mean
from nicbench.methods.base import Misfit, Objection, RoundContext, Values
from nicbench.stats.bonds import bond_end, bond_note, bond_port
from nicbench.stats.links import failure_summary
from nicbench.stats.rounds import bits_per_s

_LOAD: Final = "load"


def port_of(rounds: Sequence[Round], client: str) -> Values:
    """Returns ``bond_port``, the port of the bond that carried the load of this client."""
    words = [bond_port(rounds, job) for job, name in _loads_by_job(rounds).items() if name == client]
    return {"bond_port": words[0]} if words and words[0] is not None else {}


def note_of(rounds: Sequence[Round], clients: Collection[str]) -> Values:
    """Returns ``bond``: sentences on which clients shared a port, with the rate of each in those rounds."""
    names = {job: name for job, name in _loads_by_job(rounds).items() if name in clients}

    def rates_of(alike: Sequence[Round]) -> dict[int, str]:
        rates = {job: mean(bits_per_s(one.outcomes[job - 1].figures) for one in alike) for job in names}
        return {job: format_bits_per_s(rate) for job, rate in rates.items() if rate is not None}

    note = bond_note(rounds, names, rates_of)
    return {} if note is None else {"bond": note}


def port_of_job(one: Round, job: int) -> Values:
    """Returns ``bond_port`` of a job (number from 1), and ``bond_end``, the endpoint that the bond belongs to."""
    words = bond_port([one], job)
    return {} if words is None else {"bond_port": words, "bond_end": bond_end(one, job)}


def note_of_jobs(one: Round, names: Mapping[int, str], frames_per_s: Mapping[int, float | None]) -> Values:
    """Returns ``bond`` for one round of instances: who shared a port, by job number, with the frame rate of each."""
    rates = {job: f"{rate:.1f}" for job, rate in frames_per_s.items() if rate is not None}
    note = bond_note([one], names, lambda _: rates, "frames/s")
    return {} if note is None else {"bond": note}


def _loads_by_job(rounds: Sequence[Round]) -> dict[int, str]:
    """Returns the client of each load by the number of its job."""
    jobs = rounds[0].request.jobs if rounds else ()
    return {number: job.client for number, job in enumerate(jobs, 1) if job.role == _LOAD}


SILENT: Final = Column(
    value="failure_silent_s", head="Silent when the link failed", unit="s", form="number", is_optional=True
)

QUESTION: Final = (
    "A link of {subject} fails while streams go over it: do their connections go on, for how long are they silent, and "
    "what throughput do they reach?"
)
SENTENCE: Final = (
    "was tested with a failing link ({mode}): {failure}; over the whole round it moved {throughput_bits_per_s}"
)


def require_link_back(failure: LinkFailure | None, duration_s: float) -> None:
    """Raises ValueError where the link would not come back before the round ends."""
    if failure is not None and failure.ends_s >= duration_s:
        raise ValueError(
            f"the link is to be back {failure.ends_s:g} s after the clients begin, and a round lasts {duration_s:g} s: "
            "write a longer `duration`, or a shorter failure (`after`, `lasts`)"
        )


def failure_misfits(failure: LinkFailure | None, clients: Mapping[str, Sequence[str]]) -> Iterator[Misfit]:
    """Yields a misfit where the link to fail is on a port that is not the server's."""
    if failure is not None and failure.port not in clients:
        yield Misfit(
            option=("failure",),
            message=f"there is no port of the server called `{failure.port}`",
            next_step=f"write one of {', '.join(f'`{name}`' for name in clients)}",
        )


def failure_objection(failure: LinkFailure | None, context: RoundContext) -> Objection | None:
    """Returns an objection where the port has no bond of nicbench's, or one with fewer links."""
    if failure is None:
        return None
    return _missing_link(failure, {server.name: server.bond_links for server in context.servers})


def bond_failure_misfits(failure: LinkFailure | None, links: Mapping[str, int | None]) -> Iterator[Misfit]:
    """Yields a misfit where the bench file gives the port no bond, or one with fewer links.

    ``failure_misfits`` handles a port that is not the server's.
    """
    if failure is not None and failure.port in links and (why := _missing_link(failure, links)) is not None:
        yield Misfit(option=("failure",), message=why.message, next_step=why.next_step)


def _missing_link(failure: LinkFailure, links_of_ports: Mapping[str, int | None]) -> Objection | None:
    links = links_of_ports.get(failure.port)
    if links is None:
        return Objection(
            message=f"a link of {failure.port} is to fail, which is no bond that nicbench makes",
            next_step="write `bond: {links: 4}` under `lab`, or `bond: {of: [...]}` at the port; or remove `failure`",
        )
    if failure.link > links:
        return Objection(
            message=f"link {failure.link} of {failure.port} is to fail, which has {links}",
            next_step=f"write `link:` 1 to {links} under `failure`",
        )
    return None


def failure_values(rounds: Sequence[Round]) -> Values:
    """Returns ``failure``: a sentence for each round on the link failure; empty where no link was to fail."""
    said = [failure_summary(one.failure) for one in rounds if one.failure is not None]
    return {"failure": ". ".join(said)} if said else {}


def silence_of_client(rounds: Sequence[Round], client: str) -> Values:
    """Returns the longest silence of a client's connections after the failure; None where one never went on."""
    flows = [flow for one in rounds for flow in _flows_of_client(one, client)]
    if not flows:
        return {}
    return {"failure_silent_s": _longest(flows)}


def silence_of_job(one: Round, job: int) -> Values:
    """Returns the longest silence of a job's connections after the failure, by its number from 1.

    The value is None where a connection never went on.
    """
    flows = [flow for flow in (one.failure.flows if one.failure else ()) if job in flow.jobs]
    return {"failure_silent_s": _longest(flows)} if flows else {}


def _flows_of_client(one: Round, client: str) -> list[FlowSilence]:
    jobs = {number for number, job in enumerate(one.request.jobs, 1) if job.client == client}
    return [flow for flow in (one.failure.flows if one.failure else ()) if jobs & set(flow.jobs)]


def _longest(flows: Sequence[FlowSilence]) -> float | None:
    silences = [max(flow.silent_down_s or 0.0, flow.silent_back_s or 0.0) for flow in flows if flow.went_on]
    return max(silences) if len(silences) == len(flows) else None
