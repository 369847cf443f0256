"""Do the tables of the system file's page say what the records say?

Each table stands between `<!-- keys: NAME -->` and `<!-- end -->`, NAME being that of the record.

    .venv/bin/python docs/system_file_tables.py      write the tables anew

`make test` compares without writing.
"""

import re
from pathlib import Path

from tidegate.settings.meanings import MEANINGS
from tidegate.settings.numbers import write_number
from tidegate.settings.policies import Settings
from tidegate.settings.shapes import (
    Choice,
    Field,
    Flag,
    Number,
    Version,
    fields,
    records,
)
from tidegate.settings.system import System

PAGE = Path(__file__).with_name("system-file.md")
_TABLE = re.compile(r"(?ms)^<!-- keys: (\w+) -->\n.*?^<!-- end -->$")


def table(kind: type[Settings]) -> str:
    """Every key of one record: what it means, its default, an example."""
    rows = ["| key | meaning | default | example |", "|---|---|---|---|"]
    for key, field in fields(kind).items():
        meaning = MEANINGS[kind][key]
        says = meaning.says
        if isinstance(field.shape, Choice) and not all(w in says for w in field.shape.words):
            says += f" (`{'`, `'.join(field.shape.words)}`)"
        rows.append(f"| `{key}` | {says} | {default(kind, field)} | `{key}: {meaning.example}` |")
    return "\n".join(rows)


def default(kind: type[Settings], field: Field) -> str:
    """What holds when the key is left out."""
    if field.required:
        return "must be given"
    value, shape = field.default, field.shape
    if isinstance(shape, Number) and value is not None:
        return f"`{write_number(shape.unit, value)}`"
    if isinstance(shape, Flag):
        return "`true`" if value else "`false`"
    if isinstance(shape, Choice | Version):
        return "all" if isinstance(value, tuple) else f"`{value}`"
    return MEANINGS[kind][field.key].otherwise


def rewritten(page: str) -> str:
    """The page with every table as it is now."""
    kinds = {kind.__name__: kind for kind in records(System)}
    return _TABLE.sub(
        lambda found: f"<!-- keys: {found[1]} -->\n{table(kinds[found[1]])}\n<!-- end -->", page
    )


def main() -> None:
    """Write the page's tables anew."""
    PAGE.write_text(rewritten(PAGE.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    main()
