"""An application that counts and adds numbers, in this process or in a process that can be killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import astuple, dataclass
from pathlib import Path
from types import TracebackType

from pyspark.sql import SparkSession

from moldau.pipelines.streams import Consumed, Grouped, KafkaStreams, Produced, StreamsBuilder


@dataclass(frozen=True, slots=True)
class Counting:
    bootstrap_servers: str
    source: str
    counts: str
    sums: str
    state_dir: str

    def streams(self, spark: SparkSession | None) -> KafkaStreams:
        builder = StreamsBuilder()
        numbers = builder.stream(self.source, Consumed.with_("string", "json"))
        groups = numbers.group_by_key(Grouped.with_("string", "json"))
        groups.count().to_stream().to(self.counts, Produced.with_("string", "long"))
        groups.reduce(lambda one, two: one + two).to_stream().to(self.sums, Produced.with_("string", "json"))
        config = {
            "application.id": f"app-{self.source}",
            "bootstrap.servers": self.bootstrap_servers,
            "state.dir": self.state_dir,
            "commit.interval.ms": "100",
        }
        return KafkaStreams(builder.build(), config, spark)


class Driver:
    """The application in a separate process, with its JVM and workers."""

    def __init__(self, program: Counting, folder: Path) -> None:
        self._log = (folder / "driver.log").open("ab")
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__, *astuple(program)],
            stdout=self._log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def kill(self) -> None:
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(10)

    def __enter__(self) -> Driver:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()
        self._log.close()


def main() -> None:
    from moldau import pipelines

    spark = pipelines.session("counting", quick_start=True, config={"spark.sql.shuffle.partitions": "2"})
    with Counting(*sys.argv[1:]).streams(spark) as streams:
        streams.await_termination()


if __name__ == "__main__":
    main()
