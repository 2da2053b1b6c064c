"""The words at the end of a report: those that it uses, and no others."""

from __future__ import annotations

from nicbench.report.document.blocks import Definitions, plain
from nicbench.report.document.making import inlines, paragraph, strong

from ._documents import document

WORDS = {"PDR": "of NDR", "NDR": "no", "Holm": "how often", "p99.9": "latency"}


def test_words_that_the_report_does_not_use_are_left_out() -> None:
    glossary = Definitions(tuple((inlines(word), inlines(meaning)) for word, meaning in WORDS.items()))
    made = document(paragraph("The ", strong("PDR"), ", p99.99 and Holmes, Holm"), glossary).blocks[-1]

    assert isinstance(made, Definitions)
    assert [plain(word) for word, _ in made.pairs] == ["PDR", "Holm", "p99.9"]
