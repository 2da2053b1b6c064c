"""The glossary of a report: words that nicbench can explain; ``finishing`` leaves out those that a report lacks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_OF_STATISTICS: Final = {
    "Bootstrap": (
        "An interval found by drawing from the measured runs again and again, with replacement; BCa corrects its "
        "ends for bias and skew (Efron 1987)."
    ),
    "Mann-Whitney U": (
        "A test by ranks of whether the values of one group lie above those of another; it assumes no distribution."
    ),
    "Cliff’s delta": (
        "How often a value of one group is above one of the other, less how often it is below: from −1 to 1."
    ),
    "Holm": "A correction for many tests at once, so that one of them does not show a difference by chance alone.",
}
_OF_CLOCKS: Final = {
    "TSC": "Time-stamp counter of the processor: it counts at one fixed rate, whatever the clock of the core is.",
}
OF_ROUNDS: Final[Mapping[str, str]] = {
    "Round": "Tools that run at the same time. Several rounds make a result where they are repeated.",
    "Job": "One run of a tool: a client process and, at the other end, its server process.",
    "Port": "An interface of the host that is measured; clients lead to it over a link, several through a switch.",
    "Throughput": (
        "Payload: bytes that arrived at the program, in bits per second, without the headers of Ethernet, IP, TCP "
        "or UDP."
    ),
    "CPU": (
        "The share of all CPUs of a machine that was not idle, by its monitor; least and most are of single samples."
    ),
    "Limit": (
        "What held a throughput down, where figures show it: a link that was full, CPUs that had no time left, or a "
        "client that was slower than those beside it."
    ),
    "Retransmissions": "Segments that TCP sent again, by the sender’s kernel.",
    "Disturbed": (
        "A tool failed, clients did not begin together, or a hypervisor took a machine’s CPUs away, for longer than "
        "a threshold allows."
    ),
    **_OF_STATISTICS,
    **_OF_CLOCKS,
}
"""The words of a report on a run of workloads."""
OF_FRAMES: Final[Mapping[str, str]] = {
    "DUT": (
        "Device under test: what is measured. The tester sends frames into it and checks every frame that comes back."
    ),
    "NDR": "No-drop rate: the highest rate at which no frame is lost (the throughput of RFC 2544).",
    "PDR": "Partial-drop rate: the highest rate at which no more than the stated share of frames is lost.",
    "kpps": "Thousand packets, here frames, per second.",
    "Mpps": "Million packets, here frames, per second.",
    "Frame size": "Bytes of an Ethernet frame including its 4-byte check sequence (FCS).",
    "Line rate": "The most frames per second the link’s bit rate allows: link / ((frame + 20) × 8).",
    "Ceiling": "The most frames per second the tester itself can send, measured without a DUT.",
    "Interval": (
        "From the highest load up to which every trial met the goal to the lowest from which on none did. Where trials "
        "in between disagreed, the interval stands in place of the rate, as “41 to 58”, and beside it what some and "
        "half of the trials passed. With “<” every load that was tried failed, down to that one."
    ),
    "Limited by": (
        "What stopped the rate from being higher: the DUT, the tester or the line rate. With “≥” the DUT may do more."
    ),
    "Trial": "One transmission at one load. Many trials make a search, and a search makes a result.",
    "p99.9": "The latency that 99.9 % of frames do not exceed; other percentiles likewise.",
    "PDV": "Packet delay variation: the 99.9th percentile of the latency less its minimum (RFC 8219, 7.3.1).",
    "Long tail": ("The few frames that take much longer than the others: how many lie outside each bound."),
    "Frame loss rate": "The share of the offered frames that did not come back intact.",
    "Share": (
        "A part of frames that were counted, with its exact 95 % interval in brackets (Clopper and Pearson 1934), or "
        "its one end where none or all were counted. It takes each frame as a draw of its own."
    ),
    "L1, L2": "Layers. L2 counts the frame’s bytes; L1 counts also preamble and gap, all the wire carries.",
    "Disturbed": "Other work took the processor from the tester or the DUT for longer than a threshold allows.",
    **_OF_CLOCKS,
    **_OF_STATISTICS,
}
"""The words of a report on a run of frames that a tester sent."""
