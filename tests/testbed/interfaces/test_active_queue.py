"""What tc is asked for by a queue that marks, what the report says of it, and which keys do not belong together."""

from __future__ import annotations

import pytest
from pydantic import ValidationError
from tests.fakes import FakeHost

from nicbench.core.errors import NotReadyError
from nicbench.testbed.interfaces.active_queue import ActiveQueue
from nicbench.testbed.labs.clients import ClientsOptions, free_senders


@pytest.mark.parametrize(
    ("given", "asked", "said"),
    [
        (
            {"kind": "codel", "mark_above": "3 ms"},
            "codel limit 100 target 5000us interval 100000us ecn ce_threshold 3000us",
            "packets wait for it in codel (target 5 ms, interval 100 ms, all above 3 ms), which marks them (ECN)",
        ),
        (
            {"kind": "fq_codel", "target": "1 ms", "marks": False},
            "fq_codel limit 100 target 1000us interval 100000us noecn",
            "packets wait for it in fq_codel (target 1 ms, interval 100 ms), which drops them",
        ),
        (
            {"kind": "red", "mark_from": "6 kB"},
            "red limit 100000 min 6000 max 6001 avpkt 1000 burst 18 bandwidth 10000000bit probability 1.0 ecn",
            "packets wait for it in red (all from 6000 bytes on), which marks them (ECN)",
        ),
        (
            {"kind": "red", "mark_from": "100 kB", "mark_all_from": "200 kB", "marks": False},
            "red limit 400000 min 100000 max 200000 avpkt 1000 burst 300 bandwidth 10000000bit probability 1.0",
            "packets wait for it in red (from 100000 bytes on, all from 200000), which drops them",
        ),
    ],
)
def test_a_queue_is_asked_for_and_said_in_words(given: dict[str, object], asked: str, said: str) -> None:
    queue = ActiveQueue.model_validate(given)
    assert " ".join(queue.words(100, 10e6)) == asked
    assert queue.summary == said


@pytest.mark.parametrize(
    ("given", "wrong"),
    [
        ({"kind": "red"}, "`red` needs `mark_from`"),
        ({"kind": "red", "mark_from": "6 kB", "target": "5 ms"}, "`target` is not an option of red"),
        ({"kind": "red", "mark_from": "6 kB", "mark_all_from": "6 kB"}, "must be more than `mark_from`"),
        ({"kind": "codel", "mark_from": "6 kB"}, "`mark_from` is not an option of codel"),
        ({"kind": "codel", "marks": False, "mark_above": "3 ms"}, "`mark_above` has no effect"),
    ],
)
def test_keys_that_do_not_belong_together_are_refused(given: dict[str, object], wrong: str) -> None:
    with pytest.raises(ValidationError, match=wrong):
        ActiveQueue.model_validate(given)


def test_links_without_a_rate_have_nothing_to_wait_for() -> None:
    with pytest.raises(ValidationError, match="`queue` needs a `rate` of the links"):
        ClientsOptions.model_validate({"queue": {"kind": "codel"}})


async def test_a_kernel_without_the_discipline_is_told_with_the_next_step() -> None:
    host = FakeHost("server")
    host.fail("tc qdisc replace", "Error: Specified qdisc kind is unknown.", 2)
    with pytest.raises(NotReadyError, match="cannot be given a queue of the kind codel") as told:
        await ActiveQueue(kind="codel").attach(host, "s0", "1:1", 1000, 10e6)
    step = "use a kernel with sch_codel, as Debian's, or a virtual machine with it (`on: guest`)"
    assert told.value.next_step == step


async def test_links_that_cannot_free_their_senders_say_why() -> None:
    host = FakeHost("server")
    assert await free_senders(host, "s0") is None
    host.fail("unshare --mount", "Error: TC classifier not found.", 2)
    assert "TC classifier not found" in (await free_senders(host, "s0") or "")
