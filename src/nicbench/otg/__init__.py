"""``nicbench serve``: an open traffic generator (OTG), which snappi and other clients of that API drive.

``headers``, ``patterns``, ``flows``, ``captures``, ``metrics`` and ``checks`` are pure: messages of the API as plain
data in, programs of the engine or messages out. Only the fronts import snappi and grpc, which are an optional extra.
"""
