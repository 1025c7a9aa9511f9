"""Word count: count the words of lines in a table that can be queried at any time.

    python examples/pipelines/word_count.py
    python examples/pipelines/word_count.py --bootstrap-server localhost:9092 --follow

With `--follow` it runs until Ctrl-C and counts the lines that you type into
`kafka-console-producer --bootstrap-server localhost:9092 --topic lines`.
"""

from __future__ import annotations

import sys
import time

from common import create_topics, parser, place, wait_for

from moldau.client import Producer
from moldau.pipelines.streams import (
    Consumed,
    Grouped,
    KafkaStreams,
    Materialized,
    Produced,
    Serdes,
    StreamsBuilder,
    Topology,
)

LINES = ("the log is the truth", "the table is a view of the log", "a view can be made again")


def topology() -> Topology:
    builder = StreamsBuilder()
    lines = builder.stream("lines", Consumed.with_("string", "string"))
    counts = (
        lines.flat_map_values(str.split)
        .group_by(lambda _, word: word, Grouped.with_("string", "string"))
        .count(materialized=Materialized(Serdes.string(), Serdes.long(), "word-counts"))
    )
    counts.to_stream().to("words", Produced.with_("string", "long"))
    return builder.build()


def main() -> int:
    options = parser(__doc__)
    options.add_argument("--follow", action="store_true", help="run until Ctrl-C")
    chosen = options.parse_args()
    with place(chosen) as where:
        create_topics(where.bootstrap_servers, "lines", "words")
        with Producer({"bootstrap.servers": where.bootstrap_servers}, value_serializer="string") as producer:
            for line in LINES:
                producer.send("lines", line)
        config = {
            "application.id": "word-count",
            "bootstrap.servers": where.bootstrap_servers,
            "state.dir": str(where.folder / "state"),
        }
        with KafkaStreams(topology(), config) as streams:
            store = streams.store("word-counts")
            wait_for("all words", lambda: streams.exception or sum(count for _, count in store.all()) >= 19)
            if streams.exception is not None:
                raise streams.exception
            show(dict(store.all()))
            while chosen.follow:
                time.sleep(5)
                show(dict(store.all()))
    return 0


def show(counts: dict[str, int]) -> None:
    for word, count in sorted(counts.items(), key=lambda each: (-each[1], each[0])):
        print(f"{count:4} {word}")


if __name__ == "__main__":
    sys.exit(main())
