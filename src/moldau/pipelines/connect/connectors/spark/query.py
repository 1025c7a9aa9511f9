"""The Spark side of a connector: a query that stages rows as Parquet, in the driver of the worker.

A micro-batch is written into a folder with another name and renamed when it is complete, so a reader sees
whole batches only, and a batch that Spark repeats after a crash is not staged twice: its folder exists
already. A query waits while several batches are unread.
"""

from __future__ import annotations

import logging
import shutil
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from moldau.pipelines.connect.worker.retries import MAX_S, Backoff

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

logger = logging.getLogger(__name__)

_KEPT_BATCHES: Final = 100
#: Batches that may wait for the tasks.
_MAX_UNREAD: Final = 4
_LOOK_AGAIN_S: Final = 0.2
_FIRST_RETRY_S: Final = 1.0
_MAX_ATTEMPTS: Final = 8
#: The condition of Spark's error about a format that is not installed.
_NO_SOURCE: Final = "DATA_SOURCE_NOT_FOUND"


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
            self._run_again(spark)
        except Exception as error:
            if not self._stopping.is_set():
                logger.exception("The query of %s has failed", self._reading.format)
                self._failed(error)

    def _run_again(self, spark: SparkSession) -> None:
        """Run the query; start it again after an error that may pass, up to some times in a row."""
        from pyspark.errors import AnalysisException, IllegalArgumentException, ParseException

        run = self._stream if self._reading.is_stream else self._repeat
        backoff, attempts = Backoff(_FIRST_RETRY_S), 0
        while not self._stopping.is_set():
            started = time.monotonic()
            try:
                run(spark)
            except (AnalysisException, IllegalArgumentException, ParseException):
                # The configuration is wrong.
                raise
            except Exception as error:
                if time.monotonic() - started > MAX_S:
                    backoff.reset()
                    attempts = 0
                attempts += 1
                if attempts >= _MAX_ATTEMPTS or _NO_SOURCE in str(error):
                    raise
                delay_s = backoff.failed()
                logger.warning(
                    "The query of %s starts again in %.1f s: %s", self._reading.format, delay_s, error
                )
                self._stopping.wait(delay_s)

    def _wait_for_room(self) -> bool:
        """Wait until few staged batches are unread, so that a slow topic does not fill the disk."""
        rows = self._folder / "rows"
        while not self._stopping.is_set():
            unread = 0
            for batch in rows.iterdir() if rows.exists() else ():
                if any(batch.iterdir()):
                    unread += 1
            if unread < _MAX_UNREAD:
                return True
            self._stopping.wait(_LOOK_AGAIN_S)
        return False

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
        while self._wait_for_room():
            self._forget_read()
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
        if not self._wait_for_room():
            # The batch must fail: Spark would not read its rows again.
            raise RuntimeError("The query stops")
        unfinished = self._folder / "unfinished" / f"batch-{batch}"
        frame.write.mode("overwrite").parquet(str(unfinished))
        target.parent.mkdir(parents=True, exist_ok=True)
        for each in unfinished.glob("[_.]*"):
            each.unlink()
        shutil.move(unfinished, target)
        if isinstance(batch, int):
            self._forget(batch - _KEPT_BATCHES)

    def _forget_read(self) -> None:
        """Remove the folders of batches that are read; in batch mode none is staged again."""
        for each in (self._folder / "rows").iterdir():
            if not any(each.iterdir()):
                each.rmdir()

    def _forget(self, batch: int) -> None:
        """Remove the folder of an old batch whose files are read; Spark repeats only the last one."""
        folder = self._folder / "rows" / f"batch-{batch}"
        if folder.exists() and not any(folder.iterdir()):
            folder.rmdir()
