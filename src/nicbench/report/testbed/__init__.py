"""The diagram of a testbed: machines, their ports, the links between them and where the traffic goes. Own small code.

``wiring`` reads it from a plan, ``placing`` gives every box and text its place, ``picture`` writes it as inline SVG.
"""
