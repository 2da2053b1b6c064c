"""The diagram of a testbed: machines, their ports, the links between them, and the directions of the traffic.

``wiring`` reads it from a plan, ``placing`` positions every box and text, ``picture`` writes it as inline SVG.
"""
