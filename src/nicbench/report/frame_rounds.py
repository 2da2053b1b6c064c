"""A round of film frames for the appendix: what one process was asked, and what it said of it."""

from __future__ import annotations

from collections.abc import Iterator

from nicbench.core.frames import FrameFigures, FramesAsk
from nicbench.core.units import format_duration_s
from nicbench.report.numbers import megabytes, milliseconds, whole
from nicbench.stats.latency import percentiles_ns

_TASKS = {"read": "frames read", "write": "frames written", "prepare": "frames written, to be read later"}


def asked_of_frames(ask: FramesAsk) -> Iterator[str]:
    """Everything that decides what is measured, the engine's defaults among it."""
    yield _TASKS[ask.task]
    if ask.frame_bytes is not None:
        yield f"{whole(ask.frame_bytes)} bytes each"
    elif ask.profile is not None:
        yield f"of profile {ask.profile}"
    if ask.header_bytes is not None:
        yield f"with headers of {whole(ask.header_bytes)} bytes"
    if ask.frames is not None:
        yield f"{whole(ask.frames)} of them"
    yield "as fast as it goes" if ask.frames_per_s is None else f"{ask.frames_per_s:g} frames/s"
    if ask.warm_up_s:
        yield f"after {format_duration_s(ask.warm_up_s)} of warm-up"
    if ask.order != "forward":
        yield f"order {ask.order}"
    yield f"engine {ask.engine}"
    if ask.threads > 1:
        yield f"{ask.threads} threads"
    yield f"depth {ask.depth}"
    yield f"{whole(ask.request_bytes)} bytes a request" if ask.request_bytes else "a frame a request"
    if ask.read_ahead_frames > 1 and ask.task == "read":
        yield f"{ask.read_ahead_frames} frames read ahead"
    yield "direct" if ask.direct else "through the page cache"
    if ask.sync != "none":
        yield f"synchronised at each {ask.sync}" if ask.sync == "frame" else "synchronised at the end"
    if ask.verify != "blocks" and ask.task == "read":
        yield {"none": "not verified", "full": "every byte verified"}[ask.verify]


def said_of_frames(figures: FrameFigures) -> Iterator[str]:
    """Rates, what was dropped, how long a frame took, and the engine that it came to."""
    yield (
        f"{figures.frames_per_s:.6g} frames/s, {megabytes(figures.bytes_per_s)} MB/s, "
        f"{whole(figures.frames)} frames{_each(figures)}"
    )
    if figures.due_frames is not None:
        yield f"{whole(figures.dropped_frames)} dropped of {whole(figures.due_frames)} frames due"
    times = figures.completion
    if times is not None:
        median = percentiles_ns(times.histogram, maximum_ns=times.maximum_ns).get("50")
        known = [] if median is None else [f"median {milliseconds(median)} ms"]
        yield f"completion: {', '.join([*known, f'greatest {milliseconds(times.maximum_ns)} ms'])}"
    yield f"engine {figures.engine}"


def _each(figures: FrameFigures) -> str:
    """The size of a frame; of frames of several sizes, what all of them come to."""
    if not figures.frames:
        return ""
    size, rest = divmod(figures.bytes, figures.frames)
    return f" of {whole(figures.bytes)} bytes in all" if rest else f" of {whole(size)} bytes each"
