"""The cleaner as a separate process: `python -m moldau.storage.cleaner.process`.

Compaction parses every record and would delay the requests of a node in the same process. The node starts
this process when there is something to clean and ends it afterwards, which also releases its memory. They
exchange lines of JSON. Input: a job, and after each group any line, once the group has been swapped in.
Output: `{"group": …}` for each group, then `{"result": …}` or `{"error": …}`. The end of the input ends the
process.

The process has a lower priority than the node. If the node dies, the next one removes the `.cleaned` files;
the orphaned process does no harm and exits as soon as it notices.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from typing import IO

from moldau.base.clock import Clock, SystemClock
from moldau.protocol.records import CorruptBatch
from moldau.storage.cleaner.cleaner import Cleaner
from moldau.storage.cleaner.job import CleanJob
from moldau.storage.disk.disk import Disk, PosixDisk

_NICENESS = 5
_ORPHAN_CHECK_BYTES = 4 * 1024 * 1024
#: Amount of work at full speed before the rate is limited.
_BURST_SECONDS = 0.3
_MIN_SLEEP_S = 0.02
#: The default of `log.cleaner.io.max.bytes.per.second` is the largest double: no limit.
_NO_LIMIT = 1e15


class Throttle:
    """Called with the bytes read or written: sleeps to limit the rate, exits when orphaned."""

    def __init__(
        self,
        bytes_per_second: float,
        clock: Clock,
        sleep: Callable[[float], None],
        orphaned: Callable[[], bool],
    ) -> None:
        self._rate = bytes_per_second
        self._clock = clock
        self._sleep = sleep
        self._orphaned = orphaned
        self._allowed_at = 0.0
        self._unchecked = 0

    def __call__(self, size: int) -> None:
        self._unchecked += size
        if self._unchecked >= _ORPHAN_CHECK_BYTES:
            self._unchecked = 0
            if self._orphaned():
                raise SystemExit(1)
        if self._rate >= _NO_LIMIT:
            return
        now = self._clock.monotonic()
        self._allowed_at = max(self._allowed_at, now - _BURST_SECONDS) + size / self._rate
        if self._allowed_at - now > _MIN_SLEEP_S:
            self._sleep(self._allowed_at - now)


def serve(disk: Disk, source: IO[bytes], sink: IO[bytes], orphaned: Callable[[], bool]) -> None:
    """Run jobs until the input ends."""
    for line in iter(source.readline, b""):
        job = CleanJob.from_json(line)
        throttle = Throttle(job.io_max_bytes_per_second, SystemClock(), time.sleep, orphaned)
        try:
            cleaner = Cleaner(disk, job, throttle)
            for group in cleaner.groups():
                _say(sink, {"group": asdict(group)})
                if not source.readline():
                    return
            _say(sink, {"result": asdict(cleaner.result)})
        except CorruptBatch as error:
            _say(sink, {"error": "corrupt", "message": str(error)})
        except OSError as error:
            _say(sink, {"error": "disk", "errno": error.errno, "message": str(error)})


def _say(sink: IO[bytes], content: object) -> None:
    sink.write(json.dumps(content).encode() + b"\n")
    sink.flush()


def main() -> None:
    # Ctrl-C is sent to the whole process group; the node decides when the cleaner ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(_NICENESS)
    parent = os.getppid()
    serve(PosixDisk(), sys.stdin.buffer, sys.stdout.buffer, lambda: os.getppid() != parent)


if __name__ == "__main__":
    main()
