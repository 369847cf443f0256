"""`tidegate schema`: the JSON Schema of the system file, for editors and other tools."""

import argparse
import json
from typing import Any

__all__ = ["add"]


def add(commands: "argparse._SubParsersAction[Any]") -> None:
    """Add the command."""
    parser = commands.add_parser("schema", help="print the JSON Schema of the system file")
    parser.set_defaults(run=run)


def run(_: argparse.Namespace) -> int:
    """Print it."""
    from tidegate.settings.schema import schema

    print(json.dumps(schema(), indent=2))
    return 0
