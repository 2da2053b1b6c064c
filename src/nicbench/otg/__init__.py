"""``nicbench serve``: a server of the Open Traffic Generator API (OTG), which snappi and other clients control.

``headers``, ``patterns``, ``flows``, ``captures``, ``metrics`` and ``checks`` are pure: they turn messages of the API,
as plain data, into programs of the engine or into other messages. Only the fronts import snappi and grpc, which are an
optional extra.
"""
