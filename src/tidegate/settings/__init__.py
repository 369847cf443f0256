"""Frozen records of every setting: of a policy, and of a whole system.

One definition gives the Python object, the YAML key, the JSON Schema and the table in the docs.
Rules stand in `__post_init__`, so that a file and a line of Python are checked by the same code.
"""
