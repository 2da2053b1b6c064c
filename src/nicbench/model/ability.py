"""What a test may ask of a tester beyond loads and counts: a tester says which of it it cannot do, and why."""

from __future__ import annotations

from enum import StrEnum


class Ability(StrEnum):
    """Its value stands in a sentence: the test needs ..."""

    LATENCY = "the latency of frames"
    FRAME_COUNT = "a trial of exactly so many frames"
    BURSTS = "bursts of frames with the smallest gap of the link"
    PHASES = "loads one after another in one transmission"
    ARRIVALS = "the time at which each frame arrives"
    BESIDE = "a command that runs while frames are sent"
    MIX = "frames of several sizes in one stream"
    STREAMS = "several streams of a port"
    HEADERS = "headers other than Ethernet, IP and UDP, or frames given as a whole"
    FIELDS = "header fields that differ between flows"
    IPV6 = "IPv6"
    STREAM_BURSTS = "streams in bursts, or with an end of their own"
    MANY_WAYS = "ports that send to, or receive from, several others"
    NEIGHBOURS = "ports that answer ARP and neighbour discovery"
