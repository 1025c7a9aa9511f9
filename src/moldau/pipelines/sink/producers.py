"""The producers of a process, kept between the batches it works on.

Python workers are processes that take tasks as they come, so the next batch of a task is often somewhere
else. A transactional producer may go on only if nobody else can have had its transactional id in between:
in the same run of the query, when this process wrote the batch before. Otherwise it is made anew, which
fences whoever had the id and ends what it left undecided, and only then is the marker read: what it says
cannot change any more. If the process is wrong all the same (Spark ran the task twice), it is the one that
is fenced.

A producer is not used again after a failure.
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
from moldau.pipelines.sink.identity import TaskIdentity
from moldau.pipelines.sink.markers import Marker, find_marker, marker_of
from moldau.pipelines.sink.options import SinkOptions

#: Producers kept in a process; each has its connections.
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
    """One task's records of one batch."""

    def __init__(self, options: SinkOptions, identity: TaskIdentity) -> None:
        self._options = options
        self._identity = identity
        self._group = identity.name(options.name)
        kept = _kept.pop((options, self._group), None)
        goes_on = kept is not None and (kept.run, kept.batch) == (identity.run, identity.batch - 1)
        if kept is None or not goes_on:
            if kept is not None:
                kept.producer.close()
            kept = _Kept(_new_producer(options, self._group))
        self.producer = kept.producer
        self._begun = 0.0
        self.marker = None if goes_on else self._take_over()

    def _take_over(self) -> Marker | None:
        with contextlib.ExitStack() as unless_taken:
            unless_taken.callback(self.producer.close)
            try:
                self.producer.init_transactions()
                committed = self.producer.committed(self._group)
            except KafkaError as error:
                raise _explained(error, self._options, 0.0) from error
            marker = find_marker(committed, self._identity)
            unless_taken.pop_all()
        return marker

    def begin(self) -> None:
        self._begun = time.monotonic()
        self.producer.begin()

    def commit(self, topic: str, rows: int) -> None:
        marker = marker_of(self._identity, rows)
        self.producer.commit((self._group, TopicPartition(topic, 0), marker))

    def keep(self) -> None:
        """For the next batch."""
        _keep((self._options, self._group), _Kept(self.producer, self._identity.run, self._identity.batch))

    def give_up(self, error: BaseException | None) -> None:
        """End the transaction, unless it is not ours any more or the cluster does not answer."""
        if not isinstance(error, KafkaError) or not (error.code in _LOST or error.code.retriable):
            with contextlib.suppress(KafkaError):
                self.producer.abort()
        self.producer.close()

    def explained(self, error: KafkaError) -> Exception:
        return _explained(error, self._options, time.monotonic() - self._begun)


@contextlib.contextmanager
def transaction(options: SinkOptions, identity: TaskIdentity) -> Iterator[Transaction]:
    """The transaction of a task. Who does not commit it leaves it without an end: then it is given up."""
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
            opened.give_up(failure)


def nothing_written(options: SinkOptions, identity: TaskIdentity) -> None:
    """A task without rows: there is nothing that could be written twice, and the producer may go on."""
    kept = _kept.get((options, identity.name(options.name)))
    if kept is not None and (kept.run, kept.batch) == (identity.run, identity.batch - 1):
        kept.batch = identity.batch


@contextlib.contextmanager
def plain_producer(options: SinkOptions) -> Iterator[ArrowProducer]:
    """A producer without transactions."""
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
    """What the user can do about it, where the error alone does not say."""
    if error.code is ErrorCode.INVALID_TRANSACTION_TIMEOUT:
        return TransactionLost(
            f"The brokers allow no transaction of {options.transaction_timeout_ms} ms: set the option "
            "'kafka.transaction.timeout.ms' to their transaction.max.timeout.ms at most, or raise that."
        )
    if error.code not in _LOST:
        return error
    if seconds * 1000 >= options.transaction_timeout_ms:
        return TransactionLost(
            f"The task wrote for {seconds:.0f} s, and its transaction was given up after "
            f"{options.transaction_timeout_ms} ms. Raise the option 'kafka.transaction.timeout.ms' (the "
            "brokers' transaction.max.timeout.ms is the limit), or make the batches smaller "
            "(maxOffsetsPerTrigger, minPartitions). Nothing was written."
        )
    return TransactionLost(
        f"Another attempt at this task, or another run of the query, has taken over ({error}). Nothing was "
        "written by this one. If it happens again and again, two drivers run the same checkpoint."
    )
