"""The records that the programs read, and what their outputs must add up to.

Records in bulk have timestamps in the past, which advance with every bulk, so that no record of a window or
a join is late. They are sent in one transaction: an application that reads committed records sees all of them
at once, as in a topic that was filled before. Records at a rate have keys of their own and the current time,
which the programs pass on, so that the latency of every output is known.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from confluent_kafka import Producer

WORDS_A_LINE = 4
#: The keys of records in bulk, unless the growth of the state is measured.
KEYS = 10_000
#: The event time of a bulk, which is shorter than the grace period of windows and joins: a system may read
#: one side of a join before the other one. The next bulk begins later, when they have passed.
_BULK_MS, _NEXT_BULK_MS = 30_000, 150_000
_FIRST_BULKS_MS = 2 * 3600 * 1000
_STEP_SECONDS = 0.005
#: Spreads numbers over the keys, always in the same order.
_SPREAD, _LARGE = 2_654_435_761, 1 << 31
_FLUSH_SECONDS = 120


class Input(NamedTuple):
    """A record for the topic with this suffix. `adds` is its share in what the outputs add up to."""

    topic: str
    key: str | None
    value: str
    adds: int


class Program(NamedTuple):
    """`is_table`: outputs are the latest values of keys, which add up to the sum of what the inputs add; else
    every output counts."""

    name: str
    title: str
    sources: tuple[str, ...]
    is_table: bool
    records: Callable[[Feed, int, str], Sequence[Input]]


class Feed:
    """Sends the records of one program to one application's topics."""

    def __init__(self, program: Program, servers: str, prefix: str, epoch_ms: int) -> None:
        self.program = program
        self.expected = 0
        self.sent = 0
        #: The amounts of the orders of `totals`.
        self.owned: dict[str, int] = {}
        self._prefix = prefix
        self._bulk_ms = epoch_ms - _FIRST_BULKS_MS
        self._number = self._fresh = 0
        settings = {
            "bootstrap.servers": servers,
            "partitioner": "murmur2_random",
            "log_level": 0,
            "queue.buffering.max.messages": 4_000_000,
            "queue.buffering.max.kbytes": 1_000_000,
        }
        self._producer = Producer({**settings, "linger.ms": 0})
        self._bulk = Producer({**settings, "linger.ms": 50, "transactional.id": f"{prefix}-feed"})
        self._bulk.init_transactions()

    def fill(self, topic: str, rows: Sequence[tuple[str, str]]) -> None:
        """Send rows of a table, older than all other records."""
        for key, value in rows:
            self._send(self._producer, Input(topic, key, value, 0), self._bulk_ms - 1000)
        self._producer.flush(_FLUSH_SECONDS)

    def bulk(self, count: int, keys: int, *, in_turn: bool = False) -> float:
        """Send records over `keys` keys, spread or in turn; return the time of the commit."""
        self._bulk.begin_transaction()
        begin = self.sent
        while self.sent - begin < count:
            number = self._number if in_turn else self._number * _SPREAD % _LARGE
            at = self._bulk_ms + (self.sent - begin) * _BULK_MS // count
            for each in self.program.records(self, self._number, f"k{number % keys}"):
                self._send(self._bulk, each, at)
            self._number += 1
            if self._number % 1000 == 0:
                self._bulk.poll(0)
        self._bulk_ms += _NEXT_BULK_MS
        self._bulk.flush(_FLUSH_SECONDS)
        self._bulk.commit_transaction(_FLUSH_SECONDS)
        return time.monotonic()

    def at_rate(self, rate: int, ended: threading.Event) -> None:
        """Send records with new keys at a rate until the event is set."""
        begin, first = time.monotonic(), self.sent
        while not ended.wait(_STEP_SECONDS):
            due = int((time.monotonic() - begin) * rate)
            while self.sent - first < due:
                for each in self.program.records(self, self._fresh + 75, self._fresh_key()):
                    self._send(self._producer, each, int(time.time() * 1000))
                self._fresh += 1
            self._producer.poll(0)
        self._producer.flush(_FLUSH_SECONDS)

    def _fresh_key(self) -> str:
        # The rows of a table are limited.
        return f"k{self._fresh % KEYS}" if self.program.name == "lookup" else f"n{self._fresh}"

    def _send(self, producer: Producer, record: Input, at: int) -> None:
        key = None if record.key is None else record.key.encode()
        producer.produce(f"{self._prefix}-{record.topic}", record.value.encode(), key=key, timestamp=at)
        self.expected += record.adds
        self.sent += 1


@contextmanager
def running(feed: Feed, rate: int) -> Iterator[None]:
    """Send records at a rate in another thread."""
    ended = threading.Event()
    thread = threading.Thread(target=feed.at_rate, args=(rate, ended))
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _stateless(feed: Feed, number: int, key: str) -> Sequence[Input]:
    # Records at a rate, whose keys begin with `n`, all pass the filter.
    amount = 50 + number % 50 if key[0] == "n" else number % 100
    return (Input("in", f"user-{number % 1000}", f"{key},{amount}", int(amount >= 50)),)


def _words(feed: Feed, number: int, key: str) -> Sequence[Input]:
    if key[0] == "n":
        words = [f"{key}-{place}" for place in range(WORDS_A_LINE)]
    else:
        words = [key, *(f"{key}{letter}" for letter in "abc")]
    return (Input("in", None, " ".join(words), WORDS_A_LINE),)


def _windows(feed: Feed, number: int, key: str) -> Sequence[Input]:
    return (Input("in", key, f"page-{number % 100}", 1),)


def _streams(feed: Feed, number: int, key: str) -> Sequence[Input]:
    pair = key if key[0] == "n" else f"p{number}"
    return Input("in", pair, f"left-{number}", 0), Input("other", pair, f"right-{number}", 1)


def _lookup(feed: Feed, number: int, key: str) -> Sequence[Input]:
    return (Input("in", key, f"page-{number % 100}", 1),)


def _totals(feed: Feed, number: int, key: str) -> Sequence[Input]:
    """An order that changes its owner and its amount."""
    owner = key if key[0] == "n" else f"owner-{number * 7 % (KEYS // 10)}"
    amount = 1 + number % 97
    adds = amount - feed.owned.get(key, 0)
    feed.owned[key] = amount
    return (Input("in", key, f"{owner},{amount}", adds),)


def table_rows(keys: int) -> list[tuple[str, str]]:
    """The rows that `lookup` joins."""
    return [(f"k{number}", f"name-{number}") for number in range(keys)]


PROGRAMS = (
    Program("stateless", "stateless chain", ("in",), False, _stateless),
    Program("words", "word count", ("in",), True, _words),
    Program("windows", "windowed count", ("in",), True, _windows),
    Program("streams", "stream-stream join", ("in", "other"), False, _streams),
    Program("lookup", "stream-table join", ("in", "other"), False, _lookup),
    Program("totals", "table aggregation by foreign key", ("in",), True, _totals),
)
