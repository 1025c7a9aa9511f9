"""The kinds of tables for tests, and a process with a sink task that can be killed.

`python -m tests.harness.lake_task KIND FOLDER` reads a log of fixed content. It knows no group offsets:
where it continues is decided by the table alone.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from tests.harness.sink_tasks import Partitions, SinkRun
from tests.harness.tables import DeltaTables, IcebergLake

RECORDS = 600
KINDS = {"iceberg": IcebergLake, "delta": DeltaTables}
Lake = IcebergLake | DeltaTables


def main(kind: str, folder: str) -> None:
    lake: Lake = KINDS[kind](Path(folder))
    log = Partitions()
    for number in range(RECORDS):
        log.add({"id": number})
    run = SinkRun(lake.connector(), lake.config(), log, batch=20).start()
    while run.log.committed != {each: len(records) for each, records in log.records.items()}:
        run.step()
        time.sleep(0.005)
    run.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
