"""The pages in a browser: runs as they happen, and all runs of a folder. They are made from run folders alone.

`serving.py` is the server and puts the views of `views` together, `security.py` says what is refused.

``web/site.py`` has what views share, ``web/security.py`` what is refused before a view sees a request. A view is a
file of ``web/views`` (its addresses) and its script in ``web/static/views``, plain modules without a build step; what
is of others lies in ``web/static/vendor`` with its hashes. A page follows a run by server-sent events
(``web/views/runs.py``): ``web/watched_run.py`` reads what the journal got since, ``web/moments.py`` makes a trial a few
hundred bytes of its ten thousand, with its latencies in bins (``stats/latency.py``). ``.now.json`` in a run
folder (``store/now.py``) says what is being measured, since when, and the estimate of the time left,
``.stop-after-test`` (``store/marks.py``) asks for the end. ``web/live.py`` is the server of ``--live``: a
process of its own that keeps off the CPUs that measure.
"""
