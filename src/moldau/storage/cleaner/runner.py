"""Runners of cleaner jobs: `ProcessRunner` for a node, `InlineRunner` for tests and simulations.

A process runs one job at a time and is kept for the next one until `rest()`. To abort a job its process is
killed: the node itself swaps in segments, so the log is consistent, and the unfinished `.cleaned` files are
overwritten by the next job or removed when the log is opened. The code that cleans is not imported by a node.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from moldau.base.ids import TopicPartition
from moldau.base.pool import InlinePool, Pool
from moldau.protocol.records import CorruptBatch
from moldau.storage.cleaner.job import CleanedGroup, CleanerDied, CleaningAborted, CleanJob, CleanResult
from moldau.storage.disk.disk import Disk

Swap = Callable[[CleanedGroup], Awaitable[None]]

#: A group may contain thousands of segments.
_MAX_LINE = 1 << 24
_COMMAND = (sys.executable, "-m", "moldau.storage.cleaner.process")


class InlineRunner:
    """Cleans in the caller's pool, group by group, without a process."""

    def __init__(self, disk: Disk, pool: Pool | None = None) -> None:
        self._disk = disk
        self._pool = pool or InlinePool()
        self._jobs: set[TopicPartition] = set()

    async def run(self, job: CleanJob, swap: Swap) -> CleanResult:
        from moldau.storage.cleaner.cleaner import Cleaner

        self._jobs.add(job.topic_partition)
        try:
            cleaner = await self._pool.run(Cleaner, self._disk, job)
            groups = cleaner.groups()
            while (group := await self._pool.run(next, groups, None)) is not None:
                if job.topic_partition not in self._jobs:
                    raise CleaningAborted(str(job.topic_partition))
                await swap(group)
            return cleaner.result
        finally:
            self._jobs.discard(job.topic_partition)

    def abort(self, topic_partition: TopicPartition) -> None:
        self._jobs.discard(topic_partition)

    async def rest(self) -> None:
        return None


class ProcessRunner:
    """Cleans in processes, one for each concurrent job."""

    def __init__(self, command: Sequence[str] = _COMMAND) -> None:
        self._command = command
        self._idle: list[_Worker] = []
        #: None: the process is being started.
        self._busy: dict[TopicPartition, _Worker | None] = {}
        self._aborted: set[TopicPartition] = set()

    async def run(self, job: CleanJob, swap: Swap) -> CleanResult:
        topic_partition = job.topic_partition
        worker = self._idle.pop() if self._idle else None
        self._busy[topic_partition] = worker
        finished = False
        try:
            if worker is None:
                worker = self._busy[topic_partition] = await _Worker.start(self._command)
            if topic_partition in self._aborted:
                raise CleaningAborted(str(topic_partition))
            result = await worker.do(job, swap)
            finished = topic_partition not in self._aborted
            return result
        except CleanerDied:
            if topic_partition in self._aborted:
                raise CleaningAborted(str(topic_partition)) from None
            raise
        finally:
            del self._busy[topic_partition]
            self._aborted.discard(topic_partition)
            if worker is not None:
                if finished:
                    self._idle.append(worker)
                else:
                    await worker.kill()

    def abort(self, topic_partition: TopicPartition) -> None:
        if topic_partition in self._busy:
            self._aborted.add(topic_partition)
            worker = self._busy[topic_partition]
            if worker is not None:
                worker.send_kill()

    async def rest(self) -> None:
        idle, self._idle = self._idle, []
        for worker in idle:
            await worker.end()


class _Worker:
    """The node's end of one cleaner process."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        if process.stdin is None or process.stdout is None:
            raise RuntimeError("a cleaner process without pipes")
        self._process = process
        self._input = process.stdin
        self._output = process.stdout

    @classmethod
    async def start(cls, command: Sequence[str]) -> _Worker:
        pipe = asyncio.subprocess.PIPE
        try:
            return cls(
                await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, limit=_MAX_LINE)
            )
        except OSError as error:
            raise CleanerDied(f"the cleaner process cannot be started: {error}") from error

    async def do(self, job: CleanJob, swap: Swap) -> CleanResult:
        await self._send(job.to_json().encode())
        while True:
            answer = await self._receive()
            if "result" in answer:
                return CleanResult(**answer["result"])
            if "error" in answer:
                raise _error(answer)
            group = answer["group"]
            await swap(CleanedGroup(group["base_offset"], tuple(group["replaced"])))
            await self._send(b"swapped")

    async def _send(self, line: bytes) -> None:
        try:
            self._input.write(line + b"\n")
            await self._input.drain()
        except ConnectionError as error:
            raise CleanerDied("the cleaner process has exited") from error

    async def _receive(self) -> dict[str, Any]:
        line = await self._output.readline()
        if not line.endswith(b"\n"):
            raise CleanerDied("the cleaner process exited during a job")
        content: dict[str, Any] = json.loads(line)
        return content

    def send_kill(self) -> None:
        if self._process.returncode is None:
            self._process.kill()

    async def kill(self) -> None:
        self.send_kill()
        await self._process.wait()

    async def end(self) -> None:
        """Close the input, which ends the process."""
        self._input.close()
        await self._process.wait()


def _error(answer: dict[str, Any]) -> Exception:
    if answer["error"] == "disk":
        return OSError(answer["errno"], answer["message"])
    return CorruptBatch(answer["message"])
