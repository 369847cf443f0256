"""Does a log on a disk that really has no more room refuse, let go, and go on?"""

import subprocess
import sys
from pathlib import Path

LIMITED = """
import resource, sys
from pathlib import Path
from tidegate.errors import SpoolFull
from tidegate.spooler.log.log import Log
from tidegate.spooler.log.options import LogOptions
from tidegate.spooler.record import Record

log = Log.open(Path(sys.argv[1]), LogOptions(segment=10**9))
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
records = [Record(b"x" * 1000) for _ in range(30)]
for _ in range(20):
    log.append(records)  # a file that may not grow is followed by another
assert log.sync() == 600
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, resource.RLIM_INFINITY))
refused = 0
for _ in range(3):
    try:
        log.append(records)
    except SpoolFull as error:
        assert "there is no room on the disk" in str(error)
        refused += 1
assert refused == 3
assert not log.has_room(30_000)
before = log.usage().bytes
log.delivered(1, 590)
assert log.usage().bytes < before
assert log.pending == ((591, 600),)
assert log.append(records[:10]) == 610
assert log.sync() == 610
resource.setrlimit(resource.RLIMIT_FSIZE, (10**9, resource.RLIM_INFINITY))
assert log.has_room(30_000)
assert log.append(records) == 640
log.close()
log = Log.open(Path(sys.argv[1]))
assert log.recovery.words == "", log.recovery.words
assert log.pending == ((591, 640),)
batch = log.read(590)
assert batch is not None and batch.last == 640
print("good")
"""


def test_a_limit_of_the_system_refuses_and_nothing_is_lost(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-c", LIMITED, str(tmp_path / "lane")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (run.stdout, run.stderr) == ("good\n", "")
