"""Kafka properties translated to settings of librdkafka."""

from __future__ import annotations

from moldau.client.librdkafka.properties import translate


def test_java_properties_are_translated() -> None:
    settings = translate(
        {
            "buffer.memory": "33554432",
            "fetch.max.wait.ms": "100",
            "key.serializer": "org.apache.kafka.common.serialization.ByteArraySerializer",
            "partition.assignment.strategy": "org.apache.kafka.clients.consumer.RangeAssignor",
            "acks": "all",
        }
    )
    assert settings == {
        "log_level": 0,
        "queue.buffering.max.kbytes": 32768,
        "fetch.wait.max.ms": "100",
        "partition.assignment.strategy": "range",
        "acks": "all",
    }
