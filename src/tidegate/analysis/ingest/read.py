"""Which files hold traces, in which format, and what spans are in them?

The format is told by content: the first keys of the first document. A file is one document, or one
a line, or an array of them; a rotated log may be many files, and spans of one trace may lie in
several.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from tidegate.analysis.ingest import jaeger, otlp
from tidegate.analysis.ingest.sink import Sink
from tidegate.analysis.ingest.span import Span
from tidegate.analysis.ingest.stream import Cursor, Source
from tidegate.errors import InputError
from tidegate.settings.input_file import open_input, size_of

__all__ = ["Progress", "read_spans"]

Progress = Callable[[int, int], None]
"""Told (bytes read, bytes in all), packed as the files lie there, after each piece."""

_WRAPPERS: Final = ("trace", "result")  # Tempo's trace by id, Jaeger's third API
_OTHERS: Final = ("resourceMetrics", "resourceLogs")  # a collector may write all into one file
_ZIPKIN: Final = ("localEndpoint", "annotations", "binaryAnnotations", "traceId")


def read_spans(
    paths: Sequence[Path], add: Callable[[Span], None], *, progress: Progress | None = None
) -> Sink:
    """Every span of the files, one after another, to `add`; gives the counts of what was odd.

    OTLP/JSON and Jaeger JSON, plain or gzip. Raises InputError, one sentence with the file and the
    byte, for whatever is broken, cut off, empty, or not traces.
    """
    if not paths:
        raise InputError("expected at least one file of traces, found none")
    total = sum(size_of(path) for path in paths)
    done = 0

    def on_read(size: int) -> None:
        nonlocal done
        done += size
        if progress is not None:
            progress(done, total)

    sink = Sink(add)
    for path in paths:
        with open_input(path) as file:
            _read_file(Cursor(Source(path, file, on_read)), path, sink)
    if not sink.seen:
        names = ", ".join(str(path) for path in paths[:3]) + (", ..." if len(paths) > 3 else "")
        raise InputError(f"{names}: well-formed, but without a single span")
    return sink


def _read_file(cursor: Cursor, path: Path, sink: Sink) -> None:
    first = cursor.peek()
    if not first:
        raise InputError(f"{path}: is empty; expected OTLP or Jaeger traces as JSON")
    if first not in (b"{", b"["):
        raise cursor.fail("is not JSON; expected OTLP or Jaeger traces as JSON, plain or gzip")
    found = False
    while cursor.peek():
        if cursor.peek() == b"[":
            for _ in cursor.elements():
                found |= _read_document(cursor, sink)
        else:
            found |= _read_document(cursor, sink)
    if not found:
        raise InputError(
            f"{path}: is JSON but holds no traces; expected resourceSpans (OTLP) or"
            " data with spans (Jaeger)"
        )


def _read_document(cursor: Cursor, sink: Sink) -> bool:
    """One document at any place that may hold one; whether it is of traces."""
    first = cursor.first_key()
    if first in jaeger.TRACE_KEYS:
        jaeger.read_trace(cursor, sink)
        return True
    if first in _ZIPKIN:
        raise cursor.fail("looks like Zipkin's JSON; export it as OTLP or Jaeger JSON")
    found = False
    for key in cursor.members():
        if key in otlp.BATCHES:
            found = True
            for _ in cursor.elements():
                otlp.read_batch(cursor, sink)
        elif key == "data" and cursor.peek() in (b"[", b"n"):
            found = True
            for _ in cursor.elements():
                jaeger.read_trace(cursor, sink)
        elif key in _WRAPPERS and cursor.peek() == b"{":
            found |= _read_document(cursor, sink)
        else:
            if key in _OTHERS:
                sink.oddities["metrics or logs among the traces, passed over"] += 1
            cursor.skip()
    return found
