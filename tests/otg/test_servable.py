"""Which bench files `nicbench serve` takes: what a session would ignore is refused, with what to do instead."""

from __future__ import annotations

from pathlib import Path

import pytest

from nicbench.bench_file import parse
from nicbench.bench_file.load import has_tests
from nicbench.core.errors import UsageError
from nicbench.stages.served import require_servable

BENCH = "nicbench: 1\ntitle: t\nlab: {kind: veth}\ndut: {kind: bridge}\n"


@pytest.mark.parametrize(
    ("tester", "words"),
    [
        ("{driver: xdp}", "no single flow"),
        ("{workers: [{cpu: 0, transmit: [t0, t1]}, {cpu: 1, receive: [t0, t1]}]}", "`tester.workers`"),
        ("{timestamps: kernel, driver: net_pcap}", "`tester.timestamps`"),
        ("{capture: {frames: 5}}", "`tester.capture`"),
        ("{per_flow: counts}", "`tester.per_flow`"),
    ],
)
def test_what_a_session_would_ignore_is_refused(tester: str, words: str) -> None:
    bench = parse(f"{BENCH}tester: {tester}\n".encode(), Path("bench.yaml"), serves=True)
    with pytest.raises(UsageError, match=words) as refused:
        require_servable(bench)
    assert "leave" in str(refused.value.next_step)


def test_a_bench_file_without_a_driver_is_served_by_af_xdp() -> None:
    bench = parse(BENCH.encode(), Path("bench.yaml"), serves=True)
    assert require_servable(bench).tester.options.driver == "net_af_xdp"  # type: ignore[attr-defined]
    assert not has_tests(bench)
    assert has_tests(parse(f"{BENCH}tests: []\n".encode(), Path("bench.yaml"), serves=True))
