"""The public names as a user's type checker sees them. Nothing here runs: mypy reads it."""

from typing import assert_type

import tidegate
from tidegate import SettingsError, TidegateError

assert_type(tidegate.__version__, str)


def what_a_user_catches(error: TidegateError) -> tuple[str, ...]:
    """Every error is a TidegateError; a wrong setting also says where it stands."""
    if isinstance(error, SettingsError):
        assert_type(error.where, str)
        return error.path
    return ()
