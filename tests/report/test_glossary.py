"""The words at the end of a page: those that it uses, and no others."""

from __future__ import annotations

from nicbench.report.glossary import with_used_words

WORDS = (
    "<dl>\n  <dt>PDR</dt><dd>of NDR</dd>\n  <dt>NDR</dt><dd>no</dd>\n  <dt>Holm</dt><dd>how often</dd>\n"
    "  <dt>p99.9</dt><dd>latency</dd>\n</dl>"
)


def test_words_that_the_page_does_not_use_are_left_out() -> None:
    page = f"<p>The <b>PDR</b>, p99.99 and Ho<i></i>lm Holm</p><script>NDR</script>{WORDS}<footer>end</footer>"
    made = with_used_words(page)
    assert [f"<dt>{word}</dt>" in made for word in ("PDR", "NDR", "Holm", "p99.9")] == [
        True,
        False,
        True,
        True,
    ]
    assert made.endswith("</dl><footer>end</footer>")


def test_a_page_without_a_glossary_stays_as_it_is() -> None:
    assert with_used_words("<p>NDR</p>") == "<p>NDR</p>"
