"""Values that say which port of a bond a job used; where the test has no bond there are none."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from nicbench.methods._round_figures import bits_per_s, mean
from nicbench.methods.base import Values
from nicbench.model.round import Round
from nicbench.stats.bond_words import bond_end, bond_note, bond_port
from nicbench.units import format_bits_per_s

_LOAD: Final = "load"


def port_of(rounds: Sequence[Round], client: str) -> Values:
    """``bond_port`` of the load of this client."""
    words = [bond_port(rounds, job) for job, name in _loads(rounds).items() if name == client]
    return {"bond_port": words[0]} if words and words[0] is not None else {}


def note_of(rounds: Sequence[Round], clients: Collection[str]) -> Values:
    """``bond``: sentences on who shared a port with whom, with what each reached (the mean of the rounds)."""
    names = {job: name for job, name in _loads(rounds).items() if name in clients}
    rates = {job: mean(bits_per_s(one.outcomes[job - 1].figures) for one in rounds) for job in names}
    note = bond_note(rounds, names, {job: format_bits_per_s(rate) for job, rate in rates.items() if rate is not None})
    return {} if note is None else {"bond": note}


def port_of_job(one: Round, job: int) -> Values:
    """``bond_port`` of a job of a round, by its number from 1, and ``bond_end``: the endpoint whose bond it is of."""
    words = bond_port([one], job)
    return {} if words is None else {"bond_port": words, "bond_end": bond_end(one, job)}


def note_of_jobs(one: Round, names: Mapping[int, str], frames_per_s: Mapping[int, float | None]) -> Values:
    """``bond``: the same of one round of instances, by the numbers of their jobs, with the frames that each had."""
    rates = {job: f"{rate:.1f}" for job, rate in frames_per_s.items() if rate is not None}
    note = bond_note([one], names, rates, "frames/s")
    return {} if note is None else {"bond": note}


def _loads(rounds: Sequence[Round]) -> dict[int, str]:
    """The client of each load, by the number of its job."""
    jobs = rounds[0].request.jobs if rounds else ()
    return {number: job.client for number, job in enumerate(jobs, 1) if job.role == _LOAD}
