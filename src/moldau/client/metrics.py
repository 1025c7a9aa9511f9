"""Metrics of a client under the names of Java's metrics: counted here, or from librdkafka's statistics."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping
from typing import Any

_MICROSECONDS_PER_MS = 1000


class Statistics:
    """The last statistics of librdkafka, which it emits every `statistics.interval.ms`."""

    def __init__(self) -> None:
        self.raw: Mapping[str, Any] = {}

    def take_statistics(self, text: str) -> None:
        self.raw = json.loads(text)

    def common(self) -> dict[str, float]:
        brokers = [each for each in self.raw.get("brokers", {}).values() if each.get("nodeid", -1) >= 0]
        return {
            "connection-count": sum(1 for each in brokers if each.get("state") == "UP"),
            "connection-creation-total": sum(each.get("connects", 0) for each in brokers),
            "request-total": float(self.raw.get("tx", 0)),
            "outgoing-byte-total": float(self.raw.get("tx_bytes", 0)),
            "response-total": float(self.raw.get("rx", 0)),
            "incoming-byte-total": float(self.raw.get("rx_bytes", 0)),
            "request-latency-avg": _mean([each.get("rtt", {}) for each in brokers]),
            "request-latency-max": _largest([each.get("rtt", {}) for each in brokers]),
        }

    def topic_mean(self, name: str) -> float:
        """Return the mean of a window over all topics."""
        windows = [topic.get(name, {}) for topic in self.raw.get("topics", {}).values()]
        return _mean(windows) * _MICROSECONDS_PER_MS


class ProducerMetrics(Statistics):
    def __init__(self) -> None:
        super().__init__()
        self._started = time.monotonic()
        self._lock = threading.Lock()
        self._done = self._done_bytes = self._failed = 0

    def delivered(self, size: int, *, failed: bool) -> None:
        with self._lock:
            self._done += 1
            self._done_bytes += size
            self._failed += failed

    def snapshot(self, waiting: int) -> dict[str, float]:
        """Return all metrics; `waiting` is the number of records without a delivery report."""
        elapsed = max(time.monotonic() - self._started, 0.001)
        done, size, failed = self._done, self._done_bytes, self._failed
        return {
            "record-send-total": done + waiting,
            "record-send-rate": (done + waiting) / elapsed,
            "record-error-total": failed,
            "record-error-rate": failed / elapsed,
            "record-size-avg": size / done if done else 0.0,
            "byte-total": size,
            "byte-rate": size / elapsed,
            "records-waiting": waiting,
            "buffer-used-bytes": float(self.raw.get("msg_size", 0)),
            "buffer-total-bytes": float(self.raw.get("msg_size_max", 0)),
            "batch-size-avg": self.topic_mean("batchsize"),
            "records-per-batch-avg": self.topic_mean("batchcnt"),
            **self.common(),
        }


class ConsumerMetrics(Statistics):
    def __init__(self) -> None:
        super().__init__()
        self._started = time.monotonic()
        self._records = self._bytes = self._polls = 0

    def polled(self, records: int, size: int) -> None:
        self._polls += 1
        self._records += records
        self._bytes += size

    def snapshot(self) -> dict[str, float]:
        elapsed = max(time.monotonic() - self._started, 0.001)
        group = self.raw.get("cgrp", {})
        lags = [
            partition.get("consumer_lag", -1)
            for topic in self.raw.get("topics", {}).values()
            for partition in topic.get("partitions", {}).values()
        ]
        return {
            "records-consumed-total": self._records,
            "records-consumed-rate": self._records / elapsed,
            "bytes-consumed-total": self._bytes,
            "bytes-consumed-rate": self._bytes / elapsed,
            "poll-total": self._polls,
            "records-lag-max": float(max(lags, default=-1)),
            "assigned-partitions": float(group.get("assignment_size", 0)),
            "rebalance-total": float(group.get("rebalance_cnt", 0)),
            **self.common(),
        }


def _mean(windows: list[Mapping[str, Any]]) -> float:
    """Return the mean in milliseconds, weighted by the number of values in each window."""
    count = sum(each.get("cnt", 0) for each in windows)
    total = sum(each.get("avg", 0) * each.get("cnt", 0) for each in windows)
    return total / count / _MICROSECONDS_PER_MS if count else 0.0


def _largest(windows: list[Mapping[str, Any]]) -> float:
    return max((each.get("max", 0) for each in windows), default=0) / _MICROSECONDS_PER_MS
