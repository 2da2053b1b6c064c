"""report.pdf: the document as data, laid out by a fixed typst template. No text of a run ever becomes typst code."""

from nicbench.report.pdf.making import make_pdf

__all__ = ["make_pdf"]
