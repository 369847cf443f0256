"""Which spans do these files hold? Readers of OTLP/JSON and Jaeger JSON in bounded memory."""

from tidegate.analysis.ingest.read import Progress, read_spans
from tidegate.analysis.ingest.span import Ending, Kind, Oddities, Resource, Span

__all__ = ["Ending", "Kind", "Oddities", "Progress", "Resource", "Span", "read_spans"]
