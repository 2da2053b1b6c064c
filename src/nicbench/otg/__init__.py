"""``nicbench serve``: a server of the Open Traffic Generator API (OTG), which snappi and other clients control.

``headers.py``, ``draft.py``, ``flows.py``, ``configuration.py`` and ``counters.py`` are pure: messages of OTG as plain
data in, programs of the engine (``load``, in protocol/README.md) or messages out; ``model.py`` walks the tables of
snappi's classes, which are the model. ``session.py`` has the state that clients change, ``transmission.py`` makes a
``Trial`` of each transmission, ``stages/served.py`` the testbed. ``api.py`` is what both fronts offer
(``http_front.py``, ``grpc_front.py``): ``fronts.py`` hears clients in a process without root's rights, and asks that of
``serving.py`` over ``line.py``. Only ``model.py`` and the fronts import snappi and grpc, which are the extra ``otg``.
"""
