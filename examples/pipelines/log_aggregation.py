"""Log aggregation: log lines of many services as one Parquet table, partitioned by day and service.

    python examples/pipelines/log_aggregation.py

`log_aggregation.yaml` is the pipeline. This program sends log lines, runs `moldau pipeline run`, and queries
the table. Lines that cannot be decoded or have an unknown level are sent to the topic `logs-dead`.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow.dataset
from common import create_topics, parser, place, send

from moldau.client import Producer

SERVICES = ("web", "billing", "mail")
LEVELS = ("INFO", "INFO", "WARN", "ERROR")
LINES = 600


def line(number: int) -> dict[str, str]:
    return {
        "service": SERVICES[number % len(SERVICES)],
        "level": LEVELS[number % len(LEVELS)],
        "message": f"request {number}",
        "at": f"2026-01-{1 + number % 2:02}T12:{number % 60:02}:00Z",
    }


def main() -> int:
    with place(parser(__doc__).parse_args()) as where:
        servers = where.bootstrap_servers
        create_topics(servers, "logs", "logs-dead")
        send(servers, "logs", ((line(number)["service"], line(number), None) for number in range(LINES)))
        with Producer({"bootstrap.servers": servers}) as producer:
            producer.send("logs", b"this is not JSON")
            producer.send("logs", b'{"service": "web", "level": "LOUD", "message": "?", "at": "2026-01-01"}')
        pipeline = Path(__file__).with_suffix(".yaml")
        shutil.copy(pipeline, where.folder)
        command = [sys.executable, "-m", "moldau.cli.main", "pipeline", "run", pipeline.name]
        subprocess.run(
            [*command, "--available-now", "--bootstrap-server", servers, "--quick-start"],
            cwd=where.folder,
            check=True,
        )
        lake = pyarrow.dataset.dataset(where.folder / "lake", partitioning="hive").to_table()
        by_service = lake.group_by(["day", "service"]).aggregate([("message", "count")])
        for row in sorted(by_service.to_pylist(), key=lambda each: (str(each["day"]), each["service"])):
            print(f"{row['day']} {row['service']:8} {row['message_count']:4} lines")
    return 0


if __name__ == "__main__":
    sys.exit(main())
