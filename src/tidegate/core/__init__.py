"""Policies that decide: plain objects that are told the time and what happened.

No clock, no I/O, no lock, no log, no global randomness. The simulator, the library, the spool and
the gateway are shells around these same objects.
"""
