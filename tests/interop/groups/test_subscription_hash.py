"""The metadata hash of a consumer group equals the one that Kafka computes."""

from __future__ import annotations

import random

import pytest

from moldau.base.ids import ZERO_UUID, format_uuid, random_uuid
from moldau.groups.modern.subscription_hash import SubscriptionHashes
from moldau.metadata.image import (
    BrokerRegistration,
    ClusterImage,
    MetadataImage,
    PartitionRegistration,
    TopicImage,
    TopicsImage,
)
from tests.interop.java_oracle import ask_java

pytestmark = pytest.mark.interop

RACKS = (None, "a", "rack-b", "zürich")


def test_metadata_hash_equals_kafkas() -> None:
    images = [_random_image(random.Random(seed)) for seed in range(60)]
    said = [int(fields[1]) for fields in ask_java("SubscriptionHashes", map(_line, images))]
    hashes = SubscriptionHashes()
    assert [hashes.of_topics([*image.topics.by_name, "gone"], image) for image in images] == said


def _random_image(chance: random.Random) -> MetadataImage:
    brokers = {each: BrokerRegistration(each, 1, ZERO_UUID, rack=chance.choice(RACKS)) for each in range(4)}
    topics = [
        TopicImage(random_uuid(chance), f"topic-{number}", _partitions(chance))
        for number in range(chance.randrange(0, 20))
    ]
    by_id, by_name = {topic.id: topic for topic in topics}, {topic.name: topic for topic in topics}
    return MetadataImage(cluster=ClusterImage(brokers), topics=TopicsImage(by_id, by_name))


def _partitions(chance: random.Random) -> dict[int, PartitionRegistration]:
    count = chance.choice((1, 3, 50, 400))
    replicas = [tuple(chance.sample(range(4), chance.randrange(1, 4))) for _ in range(count)]
    return {
        index: PartitionRegistration(each, (ZERO_UUID,) * len(each), each, each[0])
        for index, each in enumerate(replicas)
    }


def _line(image: MetadataImage) -> str:
    return " ".join(_topic(image, topic) for topic in image.topics.by_name.values())


def _topic(image: MetadataImage, topic: TopicImage) -> str:
    brokers = image.cluster.brokers
    racks = ";".join(
        ",".join(rack for each in partition.replicas if (rack := brokers[each].rack) is not None)
        for partition in topic.partitions.values()
    )
    return f"{topic.name}={format_uuid(topic.id)}={racks}"
