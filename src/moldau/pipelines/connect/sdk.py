"""The interface of connectors: what a connector class implements, and what the worker offers to it.

The words are Kafka Connect's. A connector plans tasks; a task reads from a source or writes to a sink. All
methods except those that do the work have a default, so that a connector is a small class:

    class Numbers(SourceConnector):
        config = ConfigDef().define("topic", ConfigType.STRING, NO_DEFAULT, Importance.HIGH, "The topic.")

        def task(self) -> SourceTask:
            return NumbersTask()


    class NumbersTask(SourceTask):
        def start(self, context: SourceContext) -> None:
            self.context = context
            self.next = (context.offset({"numbers": "all"}) or {"next": 0})["next"]

        def poll(self) -> list[SourceRecord]:
            self.context.wait(1.0)
            self.next += 1
            return [SourceRecord(topic=self.context.config["topic"], value=self.next,
                                 source_partition={"numbers": "all"}, source_offset={"next": self.next})]

Connectors of other packages are found by the entry point group `moldau.connectors` (see `plugins`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Any, ClassVar, Protocol

import moldau
from moldau.base.ids import TopicPartition
from moldau.pipelines.connect.config.definition import ConfigDef, ConfigValue
from moldau.pipelines.connect.data.records import SinkRecord, SourceRecord

Partition = Mapping[str, Any]
Offset = Mapping[str, Any]


class ConnectorContext(Protocol):
    """What the worker offers to a connector."""

    def request_task_reconfiguration(self) -> None:
        """Ask the worker to call `task_configs` again, from any thread: the source has changed."""
        ...

    def raise_error(self, error: Exception) -> None:
        """Report from any thread that the connector cannot continue; its state becomes FAILED."""
        ...


class TaskContext(Protocol):
    """What the worker offers to a task. `config` is the task's configuration, with secrets resolved."""

    config: Mapping[str, str]

    def wait(self, seconds: float) -> bool:
        """Wait; return True at once if the task has to stop or to pause."""
        ...


class SourceContext(TaskContext, Protocol):
    def offset(self, partition: Partition) -> dict[str, Any] | None:
        """Return the stored offset of a source partition; None if there is none."""
        ...

    def offsets(self, partitions: Iterable[Partition]) -> list[dict[str, Any] | None]:
        """Return the stored offsets of several partitions, in their order."""
        ...

    def store_offsets(self, offsets: Sequence[tuple[Partition, Offset]]) -> None:
        """Store offsets at once, for a task that writes its records to the cluster itself.

        Call it in the task's thread.
        """
        ...


class SinkContext(TaskContext, Protocol):
    def seek(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Continue with these offsets at the next poll, for a sink that stores offsets itself."""
        ...

    def retry_after(self, timeout_ms: int) -> None:
        """Choose how long to wait until records are put again after a `RetriableError`."""
        ...

    def report(self, record: SinkRecord, error: Exception) -> None:
        """Report a record that the sink cannot write: to the dead-letter topic, if errors are tolerated."""
        ...

    def request_commit(self) -> None:
        """Ask for offsets to be committed soon."""
        ...

    def assignment(self) -> set[TopicPartition]: ...

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        """Stop reading partitions until `resume`."""
        ...

    def resume(self, partitions: Iterable[TopicPartition]) -> None: ...


class SourceTask:
    """Reads from a source. One thread calls all methods."""

    def start(self, context: SourceContext) -> None:
        """Open the source and continue after the stored offsets."""

    def poll(self) -> Sequence[SourceRecord]:
        """Return the next records. Without any, wait a little with `context.wait`, and return none."""
        raise NotImplementedError

    def pending_offsets(self) -> Sequence[tuple[Partition, Offset | None]]:
        """Return offsets to store without a record, once each (KIP-910); None forgets the partition.

        Called after each `poll`. They are stored after those of earlier records of the same partition.
        """
        return ()

    def commit_record(self, record: SourceRecord) -> None:
        """Called when a record is acknowledged by the brokers, or was dropped."""

    def commit(self) -> None:
        """Called after offsets were stored; everything up to them need not be read again."""

    def stop(self) -> None:
        """Release all resources."""


class SinkTask:
    """Writes to a sink. One thread calls all methods."""

    def start(self, context: SinkContext) -> None:
        """Open the sink."""

    def open(self, partitions: Sequence[TopicPartition]) -> None:
        """Called with partitions that were assigned to the task."""

    def put(self, records: Sequence[SinkRecord]) -> None:
        """Write records; they may be buffered until `flush`. `RetriableError`: put them again later."""
        raise NotImplementedError

    def flush(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Make everything durable that was put; called before offsets are committed."""

    def pre_commit(self, offsets: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        """Return the offsets that may be committed; by default all, after `flush`."""
        self.flush(offsets)
        return offsets

    def close(self, partitions: Sequence[TopicPartition]) -> None:
        """Called with partitions that are taken from the task, after their offsets were committed."""

    def stop(self) -> None:
        """Release all resources."""


class ExactlyOnceSupport(Enum):
    SUPPORTED = "SUPPORTED"
    UNSUPPORTED = "UNSUPPORTED"


class Connector:
    """Plans the tasks of one connector. Use `SourceConnector` or `SinkConnector`."""

    #: The settings of the connector, beside those of all connectors.
    config: ClassVar[ConfigDef] = ConfigDef()
    version: ClassVar[str] = moldau.__version__

    def start(self, properties: Mapping[str, str], context: ConnectorContext) -> None:
        """Take the configuration over; long work belongs into a thread of the connector."""
        self.properties = properties
        self.context = context

    def task_configs(self, max_tasks: int) -> list[Mapping[str, str]]:
        """Return a configuration for each task, at most `max_tasks`; by default its own, once."""
        return [self.properties]

    def validate(self, properties: Mapping[str, str]) -> dict[str, ConfigValue]:
        """Return values and errors of the settings, as `ConfigDef.validate` does."""
        return self.config.validate(properties)

    def stop(self) -> None:
        """End what `start` has begun."""


class SourceConnector(Connector):
    """A connector whose tasks read from a source into topics."""

    def task(self) -> SourceTask:
        """Return a new task."""
        raise NotImplementedError

    def exactly_once_support(self, properties: Mapping[str, str]) -> ExactlyOnceSupport | None:
        """Return whether tasks resume exactly after their stored offsets; None if that is unknown."""
        return None

    def alter_offsets(
        self, properties: Mapping[str, str], offsets: Sequence[tuple[Partition, Offset | None]]
    ) -> bool:
        """Check offsets that a user sets (None: reset); `ConnectError` if they are not valid.

        Return True if the connector has validated them, False if it cannot tell.
        """
        return False


class SinkConnector(Connector):
    """A connector whose tasks write records of topics to a sink."""

    def task(self) -> SinkTask:
        """Return a new task."""
        raise NotImplementedError

    def alter_offsets(
        self, properties: Mapping[str, str], offsets: Mapping[TopicPartition, int | None]
    ) -> bool:
        """Check or apply offsets that a user sets (None: reset), for a sink that stores offsets itself."""
        return False
