"""The PDF report: a document as data, laid out by a fixed typst template. No text of a run becomes typst code."""

from nicbench.report.pdf.data import make_pdf

__all__ = ["make_pdf"]
