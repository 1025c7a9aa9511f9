"""The producers of a worker process, reused between batches.

A Python worker runs tasks in any order, so the next batch of a task is often written by another process. A
transactional producer is reused only if no other process can have used its transactional id in between: in
the same run of the query, if this process wrote the previous batch. Otherwise a new producer is created,
which fences the previous owner of the id and aborts its open transaction; only then is the marker read, which
can no longer change. If Spark runs a task twice, the process with the reused producer is fenced.

A producer is not reused after a failure.
"""

from __future__ import annotations

import contextlib
import time
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import TopicPartition
from moldau.pipelines.arrow.encode import BATCH_BYTES
from moldau.pipelines.arrow.writing import ArrowProducer
from moldau.pipelines.sink.errors import TransactionLost
from moldau.pipelines.sink.markers import Marker, find_marker, marker_of
from moldau.pipelines.sink.options import SinkOptions
from moldau.pipelines.sink.task_context import TaskIdentity

#: Maximum number of producers of a process; each has its connections.
KEPT = 8

_LOST = frozenset(
    (
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.INVALID_TXN_STATE,
    )
)


@dataclass(slots=True)
class _Kept:
    producer: ArrowProducer
    run: str = ""
    batch: int = -1


_kept: OrderedDict[tuple[SinkOptions, str | None], _Kept] = OrderedDict()


class Transaction:
    """The records of one task of one batch."""

    def __init__(self, options: SinkOptions, identity: TaskIdentity) -> None:
        self._options = options
        self._identity = identity
        self._group = identity.name(options.name)
        kept = _kept.pop((options, self._group), None)
        is_next = kept is not None and (kept.run, kept.batch) == (identity.run, identity.batch - 1)
        if kept is None or not is_next:
            if kept is not None:
                kept.producer.close()
            kept = _Kept(_new_producer(options, self._group))
        self.producer = kept.producer
        self._begun = 0.0
        self.marker = None if is_next else self._acquire()

    def _acquire(self) -> Marker | None:
        with contextlib.ExitStack() as on_failure:
            on_failure.callback(self.producer.close)
            try:
                self.producer.init_transactions()
                committed = self.producer.committed(self._group)
            except KafkaError as error:
                raise _explained(error, self._options, 0.0) from error
            marker = find_marker(committed, self._identity)
            on_failure.pop_all()
        return marker

    def begin(self) -> None:
        self._begun = time.monotonic()
        self.producer.begin()

    def commit(self, topic: str, rows: int) -> None:
        marker = marker_of(self._identity, rows)
        self.producer.commit((self._group, TopicPartition(topic, 0), marker))

    def keep(self) -> None:
        """Keep the producer for the next batch."""
        _keep((self._options, self._group), _Kept(self.producer, self._identity.run, self._identity.batch))

    def abandon(self, error: BaseException | None) -> None:
        """Abort the transaction, unless it was fenced or the cluster does not answer; close the producer."""
        if not isinstance(error, KafkaError) or not (error.code in _LOST or error.code.retriable):
            with contextlib.suppress(KafkaError):
                self.producer.abort()
        self.producer.close()

    def explained(self, error: KafkaError) -> Exception:
        return _explained(error, self._options, time.monotonic() - self._begun)


@contextlib.contextmanager
def transaction(options: SinkOptions, identity: TaskIdentity) -> Iterator[Transaction]:
    """The transaction of a task, abandoned if the block raises."""
    opened = Transaction(options, identity)
    failure: BaseException | None = None
    try:
        yield opened
    except KafkaError as error:
        failure = error
        raise opened.explained(error) from error
    except BaseException as error:
        failure = error
        raise
    finally:
        if failure is None:
            opened.keep()
        else:
            opened.abandon(failure)


def skip_batch(options: SinkOptions, identity: TaskIdentity) -> None:
    """Record a batch without rows, so that the producer may be reused for the next one."""
    kept = _kept.get((options, identity.name(options.name)))
    if kept is not None and (kept.run, kept.batch) == (identity.run, identity.batch - 1):
        kept.batch = identity.batch


@contextlib.contextmanager
def plain_producer(options: SinkOptions) -> Iterator[ArrowProducer]:
    """A producer without transactions, closed if the block raises."""
    kept = _kept.pop((options, None), None) or _Kept(_new_producer(options, None))
    done = False
    try:
        yield kept.producer
        done = True
    finally:
        if done:
            _keep((options, None), kept)
        else:
            kept.producer.close()


def _keep(key: tuple[SinkOptions, str | None], kept: _Kept) -> None:
    _kept[key] = kept
    while len(_kept) > KEPT:
        _kept.popitem(last=False)[1].producer.close()


def _new_producer(options: SinkOptions, transactional_id: str | None) -> ArrowProducer:
    return ArrowProducer(
        options.settings,
        transactional_id=transactional_id,
        transaction_timeout_ms=options.transaction_timeout_ms,
        compression=options.compression,
        batch_size=options.batch_size or BATCH_BYTES,
        buffer_memory=options.buffer_memory,
        delivery_timeout_ms=options.delivery_timeout_ms,
    )


def _explained(error: KafkaError, options: SinkOptions, seconds: float) -> Exception:
    """Return the error, or one that names the remedy if the error itself does not."""
    if error.code is ErrorCode.INVALID_TRANSACTION_TIMEOUT:
        return TransactionLost(
            f"The brokers do not allow a transaction timeout of {options.transaction_timeout_ms} ms: lower "
            "the option 'kafka.transaction.timeout.ms', or raise transaction.max.timeout.ms of the brokers."
        )
    if error.code not in _LOST:
        return error
    if seconds * 1000 >= options.transaction_timeout_ms:
        return TransactionLost(
            f"The task wrote for {seconds:.0f} s, but its transaction timed out after "
            f"{options.transaction_timeout_ms} ms. Raise the option 'kafka.transaction.timeout.ms' (up to "
            "transaction.max.timeout.ms of the brokers), or make the batches smaller (maxOffsetsPerTrigger, "
            "minPartitions). Nothing was written."
        )
    return TransactionLost(
        f"Another attempt of this task, or another run of the query, has fenced this one ({error}), which "
        "wrote nothing. If this happens repeatedly, two drivers use the same checkpoint."
    )
