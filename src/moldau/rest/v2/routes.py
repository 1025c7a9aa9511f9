"""The routes of v2."""

from __future__ import annotations

from typing import Final

from moldau.rest.routing import Handler, Parameter, Route
from moldau.rest.v2 import consumers, produce, records, topics
from moldau.rest.v2.media import ALL, EMBEDDED, V2

_V2: Final = (V2,)
_EMBEDDED: Final = tuple(EMBEDDED)
_INSTANCE: Final = "/consumers/{group_name}/instances/{instance}"
_READ: Final = (
    Parameter("timeout", "Longest wait in milliseconds, up to consumer.request.timeout.ms.", "integer"),
    Parameter("max_bytes", "Approximate size of the response in bytes.", "integer"),
)


def _produce(path: str, summary: str, handler: Handler) -> Route:
    return Route(
        "POST",
        path,
        summary,
        handler,
        body="ProduceV2",
        response="ProducedV2",
        consumes=_EMBEDDED,
        produces=_V2,
    )


V2_ROUTES: Final = (
    Route(
        "GET", "/", "Answer with an empty object, to check that the proxy is alive", topics.root, produces=_V2
    ),
    Route("POST", "/", "Answer with an empty object", topics.root, produces=_V2),
    Route("GET", "/topics", "List the names of the topics", topics.list_topics, produces=_V2),
    Route(
        "GET",
        "/topics/{topic_name}",
        "Get a topic with its configs and partitions",
        topics.get_topic,
        produces=_V2,
    ),
    _produce("/topics/{topic_name}", "Produce records to a topic", produce.produce),
    Route(
        "GET",
        "/topics/{topic_name}/partitions",
        "List the partitions of a topic",
        topics.list_partitions,
        produces=_V2,
    ),
    Route(
        "GET",
        "/topics/{topic_name}/partitions/{partition_id}",
        "Get a partition",
        topics.get_partition,
        produces=_V2,
    ),
    Route(
        "GET",
        "/topics/{topic_name}/partitions/{partition_id}/offsets",
        "Get the beginning and end offsets of a partition",
        topics.get_offsets,
        produces=_V2,
    ),
    _produce(
        "/topics/{topic_name}/partitions/{partition_id}",
        "Produce records to a partition",
        produce.produce_to_partition,
    ),
    Route("GET", "/brokers", "List the ids of the brokers", topics.list_brokers, produces=_V2),
    Route(
        "POST",
        "/consumers/{group_name}",
        "Create a consumer instance",
        consumers.create,
        body="ConsumerInstanceV2",
        consumes=ALL,
        produces=_V2,
    ),
    Route("DELETE", _INSTANCE, "Delete a consumer instance", consumers.delete, produces=_V2),
    Route(
        "POST",
        f"{_INSTANCE}/subscription",
        "Subscribe to topics or to a pattern",
        consumers.subscribe,
        body="SubscriptionV2",
        consumes=ALL,
        produces=_V2,
    ),
    Route("GET", f"{_INSTANCE}/subscription", "Get the subscription", consumers.subscription, produces=_V2),
    Route(
        "DELETE",
        f"{_INSTANCE}/subscription",
        "Unsubscribe from all topics",
        consumers.unsubscribe,
        produces=_V2,
    ),
    Route(
        "POST",
        f"{_INSTANCE}/assignments",
        "Assign partitions",
        consumers.assign,
        body="PartitionsV2",
        consumes=ALL,
        produces=_V2,
    ),
    Route(
        "GET", f"{_INSTANCE}/assignments", "Get the assigned partitions", consumers.assignments, produces=_V2
    ),
    Route("GET", f"{_INSTANCE}/records", "Read records", records.read, query=_READ, produces=_EMBEDDED),
    Route(
        "POST",
        f"{_INSTANCE}/offsets",
        "Commit the offsets of records that were processed; without a body, of all that were read",
        consumers.commit,
        body="OffsetsV2",
        consumes=ALL,
        produces=_V2,
    ),
    Route(
        "GET",
        f"{_INSTANCE}/offsets",
        "Get the committed offsets of partitions",
        consumers.committed,
        body="PartitionsV2",
        consumes=ALL,
        produces=_V2,
    ),
    Route(
        "POST",
        f"{_INSTANCE}/positions",
        "Seek to offsets or timestamps",
        consumers.seek,
        body="PositionsV2",
        consumes=ALL,
        produces=_V2,
    ),
    Route(
        "POST",
        f"{_INSTANCE}/positions/beginning",
        "Seek to the beginning of partitions",
        consumers.seek_to_beginning,
        body="PartitionsV2",
        consumes=ALL,
        produces=_V2,
    ),
    Route(
        "POST",
        f"{_INSTANCE}/positions/end",
        "Seek to the end of partitions",
        consumers.seek_to_end,
        body="PartitionsV2",
        consumes=ALL,
        produces=_V2,
    ),
)
