"""Kafka Streams' words in Python, run by Spark.

    from moldau.pipelines.streams import Consumed, KafkaStreams, Produced, StreamsBuilder

    builder = StreamsBuilder()
    words = builder.stream("lines", Consumed.with_("string", "string")).flat_map_values(str.split)
    counts = words.group_by(lambda _, word: word, Grouped.with_("string", "string")).count()
    counts.to_stream().to("counts", Produced.with_("string", "long"))
    KafkaStreams(builder.build(), {"application.id": "words", "bootstrap.servers": "localhost:9092"}).start()

How it works. The DSL (`builder`, `kstream`, `grouped`, `ktable`) makes a graph of nodes (`graph`,
`operations`) with Kafka Streams' names; `topology` checks and `describe`s it. `stages` cuts it into stages,
each with at most one stateful operator; a stage is one Spark query. `physical` makes data frames of a
stage: steps without state are fused into one Python function over Arrow batches, or are Spark expressions;
stateful operators are in the table `physical.operators`. `application` creates internal topics and starts
the queries. All but `physical` and `application` is pure and needs no Spark.
"""

from __future__ import annotations
