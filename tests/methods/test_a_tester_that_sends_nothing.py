"""A tester that was found to send nothing: no trial is made, and each method says so in a result without figures."""

from __future__ import annotations

from typing import Any

import pytest

from nicbench.core.result import ResultVerdict
from nicbench.core.trial import Reading, TrialRequest
from nicbench.methods._services import Service
from nicbench.methods.address_tables import AddressLearning
from nicbench.methods.base import FrameMethod
from nicbench.methods.impairments import Impairments
from nicbench.methods.port_shares import PortShares
from nicbench.methods.receive_spread import ReceiveSpread
from nicbench.methods.recovery import SystemRecovery
from nicbench.methods.service_activation import ServiceActivation
from nicbench.methods.single_core import SingleCore
from nicbench.report.tables import sections

from .known import KnownContext, run

METHODS = (
    Impairments("test", Impairments.Options(rate="line_rate")),
    Impairments("test", Impairments.Options(rate="highest")),
    SingleCore("test", SingleCore.Options(frame_bytes=(64,))),
    ServiceActivation("test", ServiceActivation.Options(services=(Service(name="gold", cir=1e8),))),
    ReceiveSpread("test", ReceiveSpread.Options(rate="highest")),
    PortShares("test", PortShares.Options(rate="highest", frame_bytes=(64,))),
    AddressLearning("test", AddressLearning.Options()),
    SystemRecovery("test", SystemRecovery.Options(at="throughput", frame_bytes=(64,))),
)


class Nothing(KnownContext):
    bidirectional, ports = True, 4

    def read(self, point: dict[str, Any], request: TrialRequest) -> Reading:
        raise AssertionError("a trial of no frames says nothing")


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.kind)
async def test_the_result_is_incomplete_and_says_what_the_tester_sends(method: FrameMethod) -> None:
    results = await run(method, Nothing(ceiling=0.0, throughput=1e5))
    assert {result.verdict for result in results} == {ResultVerdict.INCOMPLETE}
    assert "the tester sends no more than 0 pps" in results[0].disturbances[0]
    assert sections(results, {})
