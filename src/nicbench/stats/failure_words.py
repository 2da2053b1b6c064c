"""A link that failed in the midst of a round, in words: when, and how long each connection stood still. Pure."""

from __future__ import annotations

from nicbench.model.link_failure import FlowSilence, LinkFailed
from nicbench.model.round import Job, Round


def failure_note(one: Round) -> str | None:
    """Sentences on it, the last without its full stop; None where none was asked for."""
    failed = one.failure
    if failed is None:
        return None
    head = when_words(failed)
    if failed.down_at_s is None:
        return head
    # Connections of one client that did the same are told once.
    flows = list(dict.fromkeys(flow_words(flow, one.request.jobs, failed) for flow in failed.flows))
    if not flows:
        return f"{head}; of no connection is it known how long it stood still"
    looked = f" (looks were at most {failed.step_s:.2g} s apart)" if failed.step_s else ""
    return f"{head}. {'; '.join(flows)}{looked}"


def failure_summary(failed: LinkFailed) -> str:
    """In one sentence, without its full stop: when, and how many connections went on."""
    head = when_words(failed)
    if failed.down_at_s is None or not failed.flows:
        return head
    of, stopped = len(failed.flows), sum(1 for flow in failed.flows if flow.went_on is False)
    if stopped:
        return f"{head}: {stopped} of {of} connections stood still from then on"
    known = [
        silent for flow in failed.flows for silent in (flow.silent_down_s, flow.silent_back_s) if silent is not None
    ]
    longest = f", silent for {_silence(max(known), failed)}" if known else ""
    return f"{head}: {'the connection' if of == 1 else f'all {of} connections'} went on{longest}"


def when_words(failed: LinkFailed) -> str:
    """Such as: link 2 of s0 (s0p2) was down from 3.0 s to 7.0 s, by p-s0p2 of switch."""
    asked = failed.asked
    link = f"link {asked.link} of {asked.port} ({failed.link})"
    if failed.down_at_s is None:
        return f"{link} was to fail and did not: {failed.trouble or 'the round was over before'}"
    until = "to the end" if failed.up_at_s is None else f"to {failed.up_at_s:.1f} s"
    by = "" if failed.taken_down == failed.link else f", taken down at {failed.taken_down}"
    return f"{link} was down on purpose from {failed.down_at_s:.1f} s {until}{by}"


def flow_words(flow: FlowSilence, jobs: tuple[Job, ...], failed: LinkFailed) -> str:
    """Such as: c0a went from s0p2 to s0p3, silent for 0.31 s, and for 0.12 s when the link was back."""
    who = who_words(flow, jobs)
    way = port_words(flow)
    if not flow.went_on:
        return f"{who}{way} stood still from then on"
    down = _silence(flow.silent_down_s, failed)
    back = "" if flow.silent_back_s is None else f", and {_silence(flow.silent_back_s, failed)} when the link was back"
    return f"{who}{way} was silent for {down}{back}"


def who_words(flow: FlowSilence, jobs: tuple[Job, ...]) -> str:
    """The client; two, where a connection may be of either."""
    return " or ".join(dict.fromkeys(jobs[job - 1].label or jobs[job - 1].client for job in flow.jobs))


def port_words(flow: FlowSilence) -> str:
    """Such as: , by s0p2 and then s0p3,."""
    if flow.port_before is None:
        return ""
    if flow.port_down is None or flow.port_down == flow.port_before:
        return f" (by {flow.port_before})"
    return f" (by {flow.port_before}, then predicted {flow.port_down})"


def _silence(seconds: float | None, failed: LinkFailed) -> str:
    """No finer than it was looked at."""
    if seconds is None:
        return "an unknown time"
    if failed.step_s is not None and seconds <= failed.step_s:
        return f"at most {failed.step_s:.2g} s"
    return f"{seconds:.2g} s"
