"""The words of the table of faults: a fault, its cases, and what is expected of each.

- ``early``: the command is only about to be given;
- ``before``: the testbed stands, and nothing was measured;
- ``during``: frames or clients are under way; the part of the sample that is over is drawn;
- ``between``: the first sample is in the journal, and the second has not begun;
- ``after``: the last result is in the journal, and the machine is not restored yet;
- ``written``: the journal has the end of the run, and what follows from it is only about to be written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from nicbench.core.judging import Reason

from .benches import Bench
from .places import Inject

Moment = Literal["early", "before", "during", "between", "after", "written"]


@dataclass(frozen=True)
class Expect:
    """``statuses`` of which the command must have one. Where it ends with an error ``words`` (a pattern) say why.

    Where it comes to its end with status 0: ``reasons``, one of which a sample must have been found invalid for, and
    the ``verdicts`` that the run may have. ``resumes``: once the fault is mended `resume` goes on to a good end.
    """

    statuses: frozenset[int] = frozenset({0})
    words: str = ""
    reasons: frozenset[Reason] = frozenset()
    verdicts: frozenset[str] = frozenset({"valid", "disturbed"})
    resumes: bool = False


Expected = Mapping[Moment, Expect]

FINE: Final = Expect()
"""The run comes to its end, and its figures are right."""
INCOMPLETE: Final = Expect(verdicts=frozenset({"incomplete"}))
"""The run comes to its end, and what could not be measured is left out of it."""
NEVER_VALID: Final = frozenset({"disturbed"})


def seen(*reasons: Reason) -> Expect:
    """A sample was spoilt, for one of these reasons, and measured again."""
    return Expect(reasons=frozenset(reasons))


def told(words: str) -> Expect:
    """It comes to its end, and says this."""
    return Expect(words=words)


def ends(words: str, status: int = 4, *, resumes: bool = False) -> Expect:
    """The run ends with an error that says this."""
    return Expect(frozenset({status}), words, resumes=resumes)


def until_after(expect: Expect, after: Expect = FINE) -> Expected:
    """The same at every moment until all is measured."""
    return {"before": expect, "during": expect, "between": expect, "after": after}


def only_during(expect: Expect) -> Expected:
    """A run bears it between two samples."""
    return {"before": FINE, "during": expect, "between": FINE, "after": FINE}


def early(expect: Expect) -> Expected:
    """It is so from the beginning."""
    return {"early": expect}


@dataclass(frozen=True)
class Fault:
    """A row of the table: what happens, where, on which benches, and what is expected at which moment."""

    name: str
    place: str
    benches: tuple[Bench, ...]
    inject: Inject
    expected: Expected
    prepare: Inject | None = None
    """What is done before the command is given, so that the fault can come."""


@dataclass(frozen=True)
class Case:
    """One cell of the table."""

    fault: Fault
    bench: Bench
    moment: Moment

    @property
    def expect(self) -> Expect:
        return self.fault.expected[self.moment]

    @property
    def name(self) -> str:
        words = f"{self.fault.place}:{self.fault.name}:{self.moment}:{self.bench.name}"
        return words.replace("'s", "").replace(", ", "-").replace(" ", "-")
