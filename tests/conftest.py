"""How the tests draw: the same examples in every run, so that what is red once is red again.

`pytest --hypothesis-profile explore` draws new ones, for as long as you like.

And with whom they share: with nobody, unless a test gives its processes a directory of their own.
"""

import os

from hypothesis import settings

os.environ["TIDEGATE_STATE_DIR"] = "off"  # in every process that a test starts as well

# A deadline would be a bound on the wall clock, and so a test that can flake.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.register_profile("explore", deadline=None, max_examples=2000, print_blob=True)
settings.load_profile("repeatable")
