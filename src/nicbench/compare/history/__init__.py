"""Values of many runs: read once into an index, selected by what they have in common, and the changes among them.

``compare/history`` reads the figures of each finished run once, into ``.figures.sqlite`` of the folder
(``figure_index.py``), and selects and divides them (``selection.py``, pure). ``stats/drift.py`` has jumpavg propose
where a level changes, which takes each level for Gaussian noise and writes down few of them; ``trends.py`` claims a
change by the rule of ``nicbench check``. ruptures finds the same steps, but took noise for a change in a seventh of
the short series that were tried, and is seventy times as large.
"""
