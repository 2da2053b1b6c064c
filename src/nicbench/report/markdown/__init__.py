"""report.md: the document in GitHub's Markdown (GFM), with its figures as files beside it."""

from nicbench.report.markdown.writing import Written, written

__all__ = ["Written", "written"]
