"""Does any body break the door, or come out of it as something else?

    python benchmarks/fuzz_door.py [INPUTS] [SEED]

A million by default: JSON, lines, raw bytes and batches, most of them spoilt, some packed. Each is
kept exactly as a slow judge reads it or refused as a whole (`tests/support/door_inputs.py`). The
first that is not is printed, with the seed that makes it again.
"""

import sys
import time
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).parents[1] / "tests/support"))

from door_inputs import check, made

ROUND = 1000


def main() -> int:
    inputs = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    began, kept = time.process_time(), 0
    for start in range(0, inputs, ROUND):
        luck = Random(f"{seed} {start}")
        for _ in range(min(ROUND, inputs - start)):
            sent = made(luck)
            try:
                kept += check(*sent)
            except Exception:
                print(f"seed {seed}, round {start}: {sent!r}")
                raise
    took = time.process_time() - began
    print(
        f"{inputs:,} bodies, {kept:,} kept exactly, {inputs - kept:,} refused as a whole, none"
        f" wrong (seed {seed}, {took:.0f} s of CPU)"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
