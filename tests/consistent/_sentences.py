"""What must hold in the sentences of a report: fit to read, and with the numbers and verdicts of the results."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from nicbench.core.result import ResultVerdict, Spread

from ._reading import numbers_in, visible_texts
from ._truth import ends_of, is_near
from ._whole import Whole

BAD: Final = {
    "a value of Python": re.compile(r"(?<![\w-])(None|nan|NaN|inf|Infinity|null|True|False)(?![\w-]|: every)"),
    "an identifier": re.compile(r"(?<![\w`/.])[a-z]+\d*(?:_[a-z0-9]+)+\b(?!`)"),
    "an unrounded number": re.compile(r"(?<![\w.:])(?=\d+\.\d{7})(?:0*\.0*)?[1-9](?:\.?\d){9}(?![\w:]*\.\d)"),
    "a power of ten": re.compile(r"(?<![\w.])\d[\d.,]*[eE][+-]?\d"),
    "a doubled unit": re.compile(r"(?<!\w)(%|kpps|Mpps|pps|Gb/s|Mb/s|µs|ms|ns|bytes|frames|fps) \1(?!\w)"),
    "an empty pair": re.compile(r"\(\)|\[\]|“”|\bof of\b|, ,|\s[.,;](?:\s|$)"),
    "another sign of micro": re.compile(r"\d us\b"),
}
_QUOTED: Final = ("Commands", "Prerequisites", "What is compared", "Tester", "Lab", "Traffic", "System configuration")
"""Where the words of bench files, programs and drivers stand as they are."""
_WORDS_OF_BENCH_FILES: Final = re.compile(
    r"\b(?:line_rate|critical_load|net_af_xdp|longest_burst|io_uring|[a-z]+_[a-z_]+:)"
)


def the_text_is_fit_to_read(whole: Whole) -> Iterator[str]:
    """No identifier, no value of Python, no unrounded number, no empty heading."""
    texts = [*visible_texts(whole.parts), *(("terminal", line) for line in whole.terminal)]
    for place, text in texts:
        if place.startswith(_QUOTED):
            continue
        for what, pattern in BAD.items():
            found = pattern.search(_WORDS_OF_BENCH_FILES.sub("", text))
            if found and not (what == "a value of Python" and place == "Expected spread"):
                yield f"{place}: {what}, {found[0]!r}: {text[:300]}"
    for part in whole.parts[1:]:
        if not part.title:
            yield "an empty heading"
        for table in part.tables:
            empty = [at for at, head in enumerate(table.heads) if not head and at]
            if empty:
                yield f"{part.title}: a column without a heading: {table.heads}"


CLAIM: Final = re.compile(
    r"times (?:faster|slower|as much|as fast|as long|more|less)|(?:above|below) “"
    r"| % (?:faster|slower|more|less|higher|lower)\b"
)
INTERVAL: Final = re.compile(r"\[[^\]]*,[^\]]*\]|\d to [\d.]+ times|at least|no difference")


def every_claim_has_its_interval(whole: Whole) -> Iterator[str]:
    """No difference is claimed without an interval."""
    for place, text in visible_texts(whole.parts):
        if place in ("Glossary", "Statistics over runs") or place.startswith("Test “"):
            continue
        for sentence in re.split(r"(?<=[.;!]) (?=[A-Z“])", text):
            if CLAIM.search(sentence) and "“" in sentence and not INTERVAL.search(sentence):
                yield f"{place}: a claim without its interval: {sentence}"


def findings_say_what_they_rest_on(whole: Whole) -> Iterator[str]:
    """Where every result of a run is disturbed, every sentence that tells a number says so."""
    if any(one.verdict is not ResultVerdict.DISTURBED for one in whole.summary.counted):
        return
    for text in whole.said("Answer", "Key findings"):
        is_told = re.search(r"\b(passes|forwards|loses|returns|pass within|recovers|forwards nothing)\b", text)
        if is_told and "disturbed" not in text and "“" not in text:
            yield f"a sentence about disturbed results does not say so: {text}"


def sentences_have_the_numbers_of_the_tables(whole: Whole) -> Iterator[str]:
    """A rate in the answer or a finding is one of the size and goal that it names."""
    results = (*whole.summary.over_runs, *whole.summary.counted)  # a bound is that of a single run
    for text in whole.said("Answer", "Key findings"):
        size = re.search(r"(\d+)-byte frames", text)
        if size is None:
            continue
        of_size = [one for one in results if one.parameters.get("frame_bytes") == int(size[1])]
        for found in re.finditer(r"([\d.]+) (pps|kpps|Mpps)(?![^(]*%)", re.sub(r"% of [\d.]+ [kM]?pps", "", text)):
            factor = {"pps": 1.0, "kpps": 1e3, "Mpps": 1e6}[found[2]]
            rates = [
                end
                for one in of_size
                for name, value in one.values.items()
                if "frames_per_s" in name
                for end in ends_of(value)
            ]
            (number,) = numbers_in(found[1]) or (None,)
            if number is None or number.value == 0.0:  # a DUT that passes nothing has no rate
                continue
            is_bound = text[: found.start()].endswith(("less than ", "below "))  # which is rounded up to three digits
            if is_bound and any(rate / factor <= number.value <= 1.01 * rate / factor for rate, _ in rates):
                continue
            if not any(is_near(number, rate / factor, slack / factor) for rate, slack in rates):
                yield f"{found[0]} is no rate of {size[1]} bytes: {text}"


def every_latency_in_words_has_its_loss(whole: Whole) -> Iterator[str]:
    """A finding about the latency of frames at a load says what was lost there."""
    for text in whole.said("Answer", "Key findings"):
        found = re.search(r"of the ([\w-]+) frames.* pass within", text)
        if found and not whole.summary.configurations:
            yield from _latency_finding(whole, text)


def _latency_finding(whole: Whole, text: str) -> Iterator[str]:
    load = re.search(r"At ([\d.]+) % of the (\w+)", text)
    size = re.search(r"of the (\d+)-byte frames", text)
    if load is None or size is None:
        return
    for one in whole.summary.over_runs or whole.summary.counted:
        place = one.parameters
        if (
            one.method == "latency"
            and place.get("frame_bytes") == int(size[1])
            and f"{place.get('load_percent'):g}" == load[1]
            and place.get("load_of") == load[2]
        ):
            loss = one.values.get("loss_ratio")
            lost = loss.median if isinstance(loss, Spread) else loss
            if lost and "lost" not in text:
                yield f"a finding has a latency without its loss of {lost}: {text}"
