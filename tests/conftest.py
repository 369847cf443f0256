"""How the tests draw: the same examples in every run, so that what is red once is red again.

`pytest --hypothesis-profile explore` draws new ones, for as long as you like.
"""

from hypothesis import settings

# A deadline would be a bound on the wall clock, and so a test that can flake.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.register_profile("explore", deadline=None, max_examples=2000, print_blob=True)
settings.load_profile("repeatable")
