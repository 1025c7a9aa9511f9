"""A node that jumps to a snapshot hears what changed on the way."""

from __future__ import annotations

from moldau.metadata.delta import MetadataDelta
from moldau.protocol.stored.metadata import ConfigRecord, RemoveTopicRecord
from tests.unit.metadata.builders import broker, features, image_of, topic, uid


def test_applied_to_the_old_image_it_gives_the_new_one() -> None:
    old = image_of(
        *features(),
        broker(1),
        broker(2),
        *topic(1, "kept"),
        *topic(2, "gone"),
    )
    new = image_of(
        RemoveTopicRecord(topic_id=uid(2)),
        broker(2, epoch=20, fenced=True),
        *topic(3, "gone"),
        *topic(1, "kept", partitions=2)[2:],
        ConfigRecord(resource_type=2, resource_name="kept", name="retention.ms", value="1"),
        base=old,
    )
    delta = MetadataDelta.between(old, new)
    assert delta.apply(new.offset, new.epoch) == new
    assert delta.topics_created == {uid(3)}
    assert list(delta.topics_deleted) == [uid(2)]
    assert delta.topics_changed == {uid(1): {1}, uid(3): {0}}
    assert delta.brokers_changed == {2}
    assert delta.topic_configs_changed() == {"kept"}


def test_nothing_changed() -> None:
    image = image_of(*features(), broker(1), *topic(1, "same"))
    delta = MetadataDelta.between(image, image)
    assert delta.apply(image.offset, image.epoch) == image
    assert not delta.topics_changed and not delta.brokers_changed and not delta.configs_changed
