"""How many bytes do clients send to a Kafka topic that has too few replicas?

    python benchmarks/kafka_wire.py [seconds]

Twenty producers with a megabyte of new records a second, all together, against the client library's
own imitation of three brokers; after five seconds of peace every batch is answered with
NOT_ENOUGH_REPLICAS. Shown in multiples of the bytes in peace, counted on the way to the brokers:
the client as most use it, the same with idempotence, and a spool's sink under a lane that tries
again at once. One run of each.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from kafka_storm import as_it_is, idempotent, measured, ours

WAYS = {"the client as it is": as_it_is, "the same, idempotent": idempotent, "a spool's sink": ours}


def main() -> None:
    seconds = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    print(f"{'':24}{'in peace':>12}{'mean':>8}{'highest':>9}{'at last':>9}   of {seconds} s")
    for name, way in WAYS.items():
        wire = measured(way, seconds)
        calm = sum(wire.calm) / len(wire.calm)
        highest = max(wire.starved) / calm
        print(
            f"{name:24}{calm / 1e6:7.2f} MB/s{wire.times:7.2f}x{highest:8.2f}x{wire.at_last:8.2f}x",
            flush=True,
        )


if __name__ == "__main__":
    main()
