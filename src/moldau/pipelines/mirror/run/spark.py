"""Copy tasks on Spark: one job per flow, whose tasks run until the job is cancelled.

A task of the job is one `CopyTask`, complete in itself: it finds its partitions, stores its offsets and
restarts after errors of its clusters. The driver only submits the job again when Spark loses it, and ends
when Spark itself has ended. A waiting task holds a slot, so the default master has a slot per task; Spark's
own retries and speculation are off, because two copies of a task would copy everything twice.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from moldau.base.backoff import Backoff
from moldau.base.clock import SystemClock
from moldau.base.errors import ErrorCode, KafkaError
from moldau.pipelines.mirror.config.flow import Flow
from moldau.pipelines.mirror.copy.task import CopyTask

if TYPE_CHECKING:
    from pyspark import SparkContext

logger = logging.getLogger(__name__)

_RESTART = Backoff(1.0, 60.0)
_CONFIG = {"spark.task.maxFailures": "1", "spark.speculation": "false"}


class SparkHost:
    """Runs the tasks of flows in one Spark application."""

    def __init__(self, flows: Sequence[Flow], master: str | None) -> None:
        from moldau.pipelines.spark.session import session

        if master is not None and master.startswith("sc://"):
            raise KafkaError(
                ErrorCode.INVALID_CONFIG,
                f"{master}: Spark Connect cannot run the tasks of a mirror; use spark://",
            )
        self._clock = SystemClock()
        slots = sum(flow["tasks.max"] for flow in flows)
        spark = session("moldau-mirror", master=master or f"local[{slots}]", config=_CONFIG)
        self._context: SparkContext = spark.sparkContext

    async def copy(self, flow: Flow) -> None:
        """Run the job of a flow until cancelled; submit it again when it ends."""
        failures = 0
        while True:
            begin = self._clock.monotonic()
            running = asyncio.create_task(asyncio.to_thread(self._run_job, flow))
            try:
                reason = await asyncio.shield(running)
            except asyncio.CancelledError:
                self._context.cancelJobGroup(str(flow))
                await asyncio.wait([running])
                raise
            if await asyncio.to_thread(self._is_stopped):
                raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "Spark has ended; start the mirror again")
            ran_long = self._clock.monotonic() - begin > _RESTART.maximum_seconds
            failures = 1 if ran_long else failures + 1
            delay = _RESTART.seconds(failures)
            logger.error("%s: the Spark job ended, next one in %.0f s: %s", flow, delay, reason)
            await asyncio.sleep(delay)

    def _run_job(self, flow: Flow) -> str:
        """Run the job; return why it has ended, of which Spark logs more."""
        from py4j.protocol import Py4JError  # type: ignore[import-untyped]

        context, tasks = self._context, flow["tasks.max"]
        context.setJobGroup(str(flow), f"mirror {flow}", interruptOnCancel=True)
        try:
            context.parallelize(range(tasks), tasks).mapPartitions(_TaskLoop(flow, tasks)).count()
        except (Py4JError, OSError) as error:
            return str(error).partition("\n")[0]
        return "its tasks returned"

    def _is_stopped(self) -> bool:
        from py4j.protocol import Py4JError

        try:
            return bool(self._context._jsc.sc().isStopped())
        except (Py4JError, OSError):
            return True

    def close(self) -> None:
        if not self._is_stopped():
            self._context.stop()


class _TaskLoop:
    """The function of a Spark task; it does not return."""

    def __init__(self, flow: Flow, tasks: int) -> None:
        self._flow, self._tasks = flow, tasks

    def __call__(self, numbers: Iterable[int]) -> Iterator[int]:
        for number in numbers:
            logging.basicConfig(level=logging.INFO)
            asyncio.run(CopyTask(self._flow, number, self._tasks, SystemClock()).run())
            yield number
