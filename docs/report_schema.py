"""Is the schema beside the report's page the one that the reports obey?

    .venv/bin/python docs/report_schema.py      write it anew

`make test` compares without writing.
"""

from pathlib import Path

from tidegate.report.json import schema_text

SCHEMA = Path(__file__).with_name("check-report.schema.json")

if __name__ == "__main__":
    SCHEMA.write_text(schema_text(), "utf-8")
