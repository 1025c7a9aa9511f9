"""The Spark side of a connector: a query that stages rows as Parquet, in the driver of the worker.

A micro-batch is written into a folder with another name and renamed when it is complete, so a reader sees
whole batches only, and a batch that Spark repeats after a crash is not staged twice: its folder exists
already.
"""

from __future__ import annotations

import logging
import shutil
import threading
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

logger = logging.getLogger(__name__)

_KEPT_BATCHES: Final = 100


@dataclass(frozen=True, slots=True)
class Reading:
    """What a query reads: a format with its options, as a stream or as a whole at every interval."""

    format: str
    options: Mapping[str, str]
    schema: str | None
    is_stream: bool
    interval_ms: int
    columns: tuple[str, ...]


class StagingQuery:
    def __init__(self, reading: Reading, folder: Path, failed: Callable[[Exception], None]) -> None:
        self._reading = reading
        self._folder = folder
        self._failed = failed
        self._stopping = threading.Event()
        self._query: Any = None
        self._thread = threading.Thread(target=self._run, name=f"spark-{reading.format}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        query = self._query
        if query is not None:
            query.stop()
        self._thread.join(60)

    def _run(self) -> None:
        try:
            from moldau.pipelines.spark.session import active_session, session

            # The session of the worker, if its tasks run on Spark.
            spark = active_session() or session("moldau-connect")
            if self._reading.is_stream:
                self._stream(spark)
            else:
                self._repeat(spark)
        except Exception as error:
            if not self._stopping.is_set():
                logger.exception("The query of %s has failed", self._reading.format)
                self._failed(error)

    def _stream(self, spark: SparkSession) -> None:
        reader = spark.readStream.format(self._reading.format).options(**self._reading.options)
        if self._reading.schema:
            reader = reader.schema(self._reading.schema)
        else:
            spark.conf.set("spark.sql.streaming.schemaInference", "true")
        writer = (
            self._chosen(reader.load())
            .writeStream.foreachBatch(self._stage)
            .option("checkpointLocation", str(self._folder / "checkpoint"))
            .trigger(processingTime=f"{self._reading.interval_ms} milliseconds")
        )
        self._query = writer.start()
        if self._stopping.is_set():
            self._query.stop()
        self._query.awaitTermination()

    def _repeat(self, spark: SparkSession) -> None:
        """Read everything, at once and then at every interval."""
        while True:
            reader = spark.read.format(self._reading.format).options(**self._reading.options)
            if self._reading.schema:
                reader = reader.schema(self._reading.schema)
            self._stage(self._chosen(reader.load()), uuid.uuid4().hex)
            if self._stopping.wait(self._reading.interval_ms / 1000):
                return

    def _chosen(self, frame: DataFrame) -> DataFrame:
        return frame.selectExpr(*self._reading.columns) if self._reading.columns else frame

    def _stage(self, frame: DataFrame, batch: int | str) -> None:
        target = self._folder / "rows" / f"batch-{batch}"
        if target.exists():
            return
        unfinished = self._folder / "unfinished" / f"batch-{batch}"
        frame.write.mode("overwrite").parquet(str(unfinished))
        target.parent.mkdir(parents=True, exist_ok=True)
        for each in unfinished.glob("[_.]*"):
            each.unlink()
        shutil.move(unfinished, target)
        if isinstance(batch, int):
            self._forget(batch - _KEPT_BATCHES)

    def _forget(self, batch: int) -> None:
        """Remove the folder of an old batch whose files are read; Spark repeats only the last one."""
        folder = self._folder / "rows" / f"batch-{batch}"
        if folder.exists() and not any(folder.iterdir()):
            folder.rmdir()
