"""TRex's Python client in a process of its own: a request is a line of JSON on stdin, its reply one on stdout.

It runs in whichever Python the user's TRex release supports (3.7 and later), and so imports nothing of nicbench. TRex
brings libraries of its own, old versions among them, which replace others of the same names only here.
"""
