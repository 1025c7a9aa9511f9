"""A producer that uses many features: it sends random stock prices.

Prices are JSON, with the stock as key. Important stocks have their own partition, so that records of other
stocks do not delay them. An interceptor counts sent and acknowledged records. Records are sent in compressed
batches, and failed requests are retried. Ctrl-C stops the producer: it waits for all acknowledgements and
prints metrics.

    moldau dev                                  # in another terminal
    python examples/stock_prices.py --records 10000
    kafka-console-consumer --bootstrap-server localhost:9092 --topic stock-prices --from-beginning
"""

from __future__ import annotations

import argparse
import random
import signal
import time
from collections import Counter
from typing import Any

from moldau.client import (
    AdminClient,
    KafkaError,
    NewTopic,
    Producer,
    ProducerInterceptor,
    ProducerRecord,
    RecordMetadata,
    partition_for_key,
)
from moldau.client.serdes import JsonSerializer, StringSerializer

TOPIC = "stock-prices"
PARTITIONS = 4
STOCKS = {"MOLD": 42.0, "ELBE": 17.5, "ODER": 8.25, "ISAR": 99.9, "SAALE": 5.0}
IMPORTANT = frozenset({"MOLD"})


class ImportantFirst:
    """Assigns important stocks to the last partition, and the others to the rest by their key."""

    def partition(
        self, topic: str, key: Any, key_bytes: Any, value: Any, value_bytes: Any, partitions: int
    ) -> int:
        if key in IMPORTANT or partitions == 1:
            return partitions - 1
        return partition_for_key(key_bytes, partitions - 1)


class Counting(ProducerInterceptor):
    """Counts the records sent by stock, and those acknowledged by partition."""

    def __init__(self) -> None:
        self.sent: Counter[str] = Counter()
        self.arrived: Counter[int] = Counter()
        self.failed = 0

    def on_send(self, record: ProducerRecord[Any, Any]) -> ProducerRecord[Any, Any]:
        self.sent[str(record.key)] += 1
        return record

    def on_acknowledgement(self, metadata: RecordMetadata | None, error: KafkaError | None) -> None:
        if metadata is None:
            self.failed += 1
        else:
            self.arrived[metadata.partition] += 1


def prices(randomness: random.Random) -> Any:
    """Yield prices of all stocks as endless random walks."""
    current = dict(STOCKS)
    while True:
        for stock in current:
            current[stock] = round(max(current[stock] * (1 + randomness.gauss(0, 0.01)), 0.01), 2)
            yield stock, {"stock": stock, "price": current[stock], "time": int(time.time() * 1000)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--bootstrap-server", default="localhost:9092")
    parser.add_argument("--records", type=int, default=1000, help="number of prices to send")
    options = parser.parse_args()

    with AdminClient(options.bootstrap_server) as admin:
        created = admin.create_topics([NewTopic(TOPIC, partitions=PARTITIONS)])
        print(f"topic {TOPIC}: {created[TOPIC]}")

    stopping = False

    def stop(*_: object) -> None:
        nonlocal stopping
        stopping = True

    signal.signal(signal.SIGINT, stop)
    counting = Counting()
    producer = Producer(
        {
            "bootstrap.servers": options.bootstrap_server,
            "client.id": "stock-prices",
            "acks": "all",
            "retries": 10,
            "linger.ms": 20,
            "batch.size": 65536,
            "compression.type": "lz4",
        },
        key_serializer=StringSerializer(),
        value_serializer=JsonSerializer(),
        partitioner=ImportantFirst(),
        interceptors=[counting],
    )
    with producer:
        for number, (stock, price) in enumerate(prices(random.Random())):
            if stopping or number == options.records:
                break
            producer.send(TOPIC, price, stock, headers=[("source", b"random walk")])
        producer.flush()
        metrics = producer.metrics()
    print(f"sent: {dict(counting.sent)}")
    print(f"arrived by partition: {dict(sorted(counting.arrived.items()))}, failed: {counting.failed}")
    for name in ("record-send-total", "record-error-total", "record-size-avg", "byte-rate"):
        print(f"{name}: {metrics[name]:.1f}")


if __name__ == "__main__":
    main()
