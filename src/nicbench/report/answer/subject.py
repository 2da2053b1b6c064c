"""Who a sentence is about."""

from __future__ import annotations

from nicbench.core.plan import Plan
from nicbench.core.turn import DEFAULT

_KINDS = {"kernel-forward": "kernel IP forwarding", "policer": "policer", "bridge": "Linux bridge"}


def dut_name(plan: Plan) -> str | None:
    """What the DUT is called without an article; None where the plan does not say."""
    kind = plan.dut_disclosure.get("kind") or plan.dut.get("kind")
    name = plan.dut_disclosure.get("name") or plan.dut.get("name") or _KINDS.get(str(kind))
    return str(name or kind) if name or kind else None


def subject_of(plan: Plan | None) -> str:
    """Who the sentence is about; a DUT may disclose a ``name`` that reads better than its kind."""
    name = plan and (plan.dut_disclosure.get("name") or plan.dut.get("name"))
    kind = plan and (plan.dut_disclosure.get("kind") or plan.dut.get("kind"))
    if plan is None or not (name or kind):
        return "The DUT"
    if plan.simulated:
        return "The simulated DUT"
    known = name or _KINDS.get(str(kind))
    if plan.lab is not None:
        return f"This machine's {known or f'{kind} DUT'}"
    return f"The DUT ({known or kind})"


def subject_in(plan: Plan | None, configuration: str) -> str:
    """Who a table is about: of several imported devices, each is a configuration of the name that its source gives."""
    if plan is None or configuration == DEFAULT or plan.simulated or plan.lab is not None or not plan.dut.get("name"):
        return subject_of(plan)
    return f"The DUT ({configuration})"
