"""How fast are traces read, and in how much memory?

    .venv/bin/python benchmarks/traces.py [megabytes, 1000 unless given]

Bar: a gigabyte of spans below 300 MB of resident memory. A file of traces as a collector writes
them (about 0.8 kB a span, ids and times all different, seed 1) is made in a temporary folder and
removed afterwards; each case reads it in a fresh process. MB/s are of the file's bytes by the
process's CPU time; memory is the process's peak.
"""

import json
import platform
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from random import Random
from time import process_time
from typing import Any

from tidegate.analysis.infer import infer
from tidegate.analysis.ingest import Span, read_spans

EPOCH_MS = 1_700_000_000_000
# Caller, callee, how long, and whether the callee leaves spans of its own.
CALLS = [("web", "shop", 60), ("shop", "cart", 25), ("shop", "auth", 12), ("cart", "postgresql", 6)]
SERVICES = ("web", "shop", "cart", "auth")


def attributes(tags: dict[str, str]) -> list[dict[str, Any]]:
    """Numbers come as text, as protobuf's JSON writes them."""
    return [
        {"key": key, "value": {"intValue" if tag.isdigit() else "stringValue": tag}}
        for key, tag in tags.items()
    ]


def span(rng: Random, trace: str, parent: str, kind: int, start: int, length: int, to: str) -> Any:
    return {
        "traceId": trace,
        "spanId": f"{rng.getrandbits(64):016x}",
        **({"parentSpanId": parent} if parent else {}),
        "flags": 257,
        "name": "GET",
        "kind": kind,
        "startTimeUnixNano": str(start),
        "endTimeUnixNano": str(start + length),
        "attributes": attributes(
            {
                "http.request.method": "GET",
                "http.route": f"/{to}/{{id}}",
                "server.address": f"{to}.prod.svc.cluster.local",
                "server.port": "8080",
                "url.full": f"http://{to}:8080/{to}/{rng.randrange(10**9)}",
                "http.response.status_code": "200",
                "network.protocol.version": "1.1",
                "user_agent.original": "python-requests/2.32.3",
            }
        ),
        "status": {},
    }


def traces(rng: Random) -> Iterator[dict[str, list[Any]]]:
    """One trace after another as spans by service: five requests and calls, eight spans."""
    now = EPOCH_MS * 1_000_000
    while True:
        now += round(rng.expovariate(1 / 5_000_000))
        trace = f"{rng.getrandbits(128):032x}"
        spans: dict[str, list[Any]] = {service: [] for service in SERVICES}
        root = span(rng, trace, "", 2, now, 100_000_000, "web")
        spans["web"].append(root)
        inside = {"web": root["spanId"]}
        for caller, callee, length in CALLS:
            took = round(length * 1_000_000 * rng.uniform(0.8, 1.2))
            call = span(rng, trace, inside[caller], 3, now, took, callee)
            spans[caller].append(call)
            if callee in spans:
                served = span(rng, trace, call["spanId"], 2, now, took - 1000, callee)
                spans[callee].append(served)
                inside[callee] = served["spanId"]
        yield spans


def document(spans: dict[str, list[Any]]) -> dict[str, Any]:
    return {
        "resourceSpans": [
            {
                "resource": {
                    "attributes": attributes(
                        {"service.name": service, "service.instance.id": f"{service}-1"}
                    )
                },
                "scopeSpans": [{"scope": {"name": "http"}, "spans": found}],
            }
            for service, found in spans.items()
        ]
    }


def write(path: Path, size: int) -> None:
    """One batch a line, fifty traces a batch, until the file has its size."""
    rng = Random(1)
    source = traces(rng)
    with path.open("w") as file:
        while file.tell() < size:
            batch: dict[str, list[Any]] = {service: [] for service in SERVICES}
            for _ in range(50):
                for service, found in next(source).items():
                    batch[service] += found
            file.write(json.dumps(document(batch), separators=(",", ":")) + "\n")


def measure(case: str, path: Path) -> None:
    """One case in this process; prints spans, CPU seconds and the peak of memory."""
    count = 0

    def add(span: Span) -> None:
        nonlocal count
        count += 1

    begin = process_time()
    if case == "read":
        read_spans([path], add)
    else:
        count = infer([path]).spans
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    print(json.dumps([count, process_time() - begin, peak]))


def main() -> None:
    """Make the file, run each case in its own process, print one line each."""
    if len(sys.argv) > 2:
        measure(sys.argv[1], Path(sys.argv[2]))
        return
    size = int(sys.argv[1] if len(sys.argv) > 1 else 1000) * 1_000_000
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "traces.jsonl"
        write(path, size)
        megabytes = path.stat().st_size / 1e6
        print(f"{megabytes:,.0f} MB of OTLP/JSON lines, Python {platform.python_version()}")
        for case in ("read", "infer"):
            run = [sys.executable, __file__, case, str(path)]
            out = subprocess.run(run, check=True, capture_output=True, text=True).stdout
            count, seconds, peak = json.loads(out)
            print(
                f"{case:6}{count:12,} spans{seconds:8.1f} s{megabytes / seconds:8.1f} MB/s"
                f"{seconds / count * 1e6:8.1f} us/span{peak:8.0f} MB peak"
            )


if __name__ == "__main__":
    main()
