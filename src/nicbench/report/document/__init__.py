"""The report as typed blocks, read from its page, so that PDF and Markdown say what the page says and nothing else.

What templates may rely on: semantic tags (``KNOWN`` in tree.py; a test compares them with the templates) and these
classes. ``eyebrow``, ``answer``, ``caption``, ``description``, ``author`` of a paragraph; ``plainly``, ``verdict``,
``multiples`` of a ``div``; ``opening`` of a section that stands before the contents; ``badge`` with its verdict,
``quiet``, ``missed``, ``disturbed`` and the other verdicts of a ``span`` or cell; ``words`` of a cell, ``facts`` and
``testbed`` of a table; ``made``, ``about``, ``spoilt`` of a row.
Left out: what bears ``narrow`` (a drawing for a small screen), ``numbers`` (the table behind a chart) or ``screen``,
navigation and scripts. Of ``details`` that bear ``many``, or have more rows than are worth their paper, only a sentence
is left.
"""

from nicbench.report.document.reading import read

__all__ = ["read"]
