"""Replaying records into a delta, and the images that result."""

from __future__ import annotations

import pytest

from moldau.base.ids import MIGRATING_DIR
from moldau.metadata.delta import MetadataDelta
from moldau.metadata.errors import InconsistentMetadata
from moldau.metadata.features import VersionRange
from moldau.metadata.image import ConfigResource, MetadataImage, ResourceType
from moldau.metadata.image_records import image_records
from moldau.metadata.records import RECORD_TYPES, decode_record, encode_record
from moldau.protocol.stored.metadata import (
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    ConfigRecord,
    FeatureLevelRecord,
    FenceBrokerRecord,
    NoOpRecord,
    PartitionChangeRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveTopicRecord,
    RemoveUserScramCredentialRecord,
    TopicRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
    ZkMigrationStateRecord,
)
from tests.unit.metadata.builders import broker, config, features, full_image, image_of, quota, topic, uid


def test_image_records_restore_the_image() -> None:
    image = full_image()
    values = [encode_record(record, 30) for record in image_records(image)]
    again = MetadataDelta(MetadataImage.empty())
    again.replay_all(decode_record(value) for value in values)
    assert again.apply(image.offset, image.epoch) == image


def test_every_record_type_can_be_replayed() -> None:
    from moldau.metadata import delta

    assert set(delta._REPLAY) == set(RECORD_TYPES.values())


def test_applying_a_delta_does_not_change_the_base_image() -> None:
    before = full_image()
    frozen = full_image()
    image_of(
        RemoveTopicRecord(topic_id=uid(1)),
        PartitionChangeRecord(partition_id=0, topic_id=uid(2), isr=[]),
        config("retention.ms", None),
        UnregisterBrokerRecord(broker_id=2, broker_epoch=10),
        quota("producer_byte_rate", 0, remove=True, user="u", client_id=None),
        base=before,
    )
    assert before == frozen


def test_unchanged_parts_are_shared_between_images() -> None:
    before = full_image()
    after = image_of(config("retention.ms", "5"), base=before)
    assert after.topics is before.topics
    assert after.cluster is before.cluster
    assert after.offset == before.offset + 1


def test_partition_change_updates_only_set_fields() -> None:
    before = full_image()
    delta = MetadataDelta(before)
    delta.replay(PartitionChangeRecord(partition_id=1, topic_id=uid(1), isr=[2], leader=2))
    partition = delta.apply(99, 4).topics.by_name["orders"].partitions[1]
    assert (partition.leader, partition.leader_epoch, partition.partition_epoch) == (2, 1, 1)
    assert partition.isr == (2,)
    assert partition.replicas == (1, 2)
    assert delta.topics_changed == {uid(1): {1}}


def test_leader_epoch_is_unchanged_without_a_leader_in_the_change() -> None:
    after = image_of(PartitionChangeRecord(partition_id=1, topic_id=uid(1), isr=[1]), base=full_image())
    partition = after.topics.by_id[uid(1)].partitions[1]
    assert (partition.leader, partition.leader_epoch, partition.partition_epoch) == (1, 0, 1)


def test_clear_elr_of_one_topic_and_of_all_topics() -> None:
    for record in (ClearElrRecord(topic_name="a.b"), ClearElrRecord()):
        partition = image_of(record, base=full_image()).topics.by_name["a.b"].partitions[0]
        assert (partition.elr, partition.last_known_elr, partition.partition_epoch) == ((), (), 1)


def test_removing_a_topic_removes_its_configs() -> None:
    delta = MetadataDelta(full_image())
    delta.replay(RemoveTopicRecord(topic_id=uid(1)))
    after = delta.apply(99, 1)
    assert "orders" not in after.topics.by_name
    assert after.topic_config("orders") == {}
    assert [gone.name for gone in delta.topics_deleted.values()] == ["orders"]
    assert delta.topics_changed == {}
    assert delta.topic_configs_changed() == {"orders"}


def test_topic_name_is_reusable_within_a_delta() -> None:
    delta = MetadataDelta(full_image())
    delta.replay(RemoveTopicRecord(topic_id=uid(1)))
    delta.replay_all(topic(7, "orders"))
    after = delta.apply(99, 1)
    assert after.topics.by_name["orders"].id == uid(7)
    assert uid(1) not in after.topics.by_id
    assert delta.topics_created == {uid(7)}


def test_topic_created_and_removed_within_a_delta_leaves_no_trace() -> None:
    delta = MetadataDelta(full_image())
    delta.replay_all([*topic(7, "short"), RemoveTopicRecord(topic_id=uid(7)), *topic(8, "short")])
    assert delta.topics_created == {uid(8)}
    assert not delta.topics_deleted


def test_brokers_are_fenced_and_unfenced_by_old_and_new_records() -> None:
    image = image_of(FenceBrokerRecord(id=1, epoch=10), base=full_image())
    assert image.cluster.brokers[1].fenced
    image = image_of(UnfenceBrokerRecord(id=1, epoch=10), base=image)
    assert image.cluster.is_active(1)
    image = image_of(BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=10, fenced=1), base=image)
    assert image.cluster.brokers[1].fenced
    image = image_of(BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=10, fenced=-1), base=image)
    assert image.cluster.is_active(1)
    change = BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=10, in_controlled_shutdown=1)
    assert not image_of(change, base=image).cluster.is_active(1)


def test_broker_directories_and_cordoned_directories() -> None:
    image = full_image()
    one, several = image.cluster.brokers[1], image.cluster.brokers[2]
    assert one.default_directory == uid(101)
    assert not one.has_online_directory(uid(1))
    assert one.takes_new_partitions
    changed = BrokerRegistrationChangeRecord(broker_id=2, broker_epoch=10, log_dirs=[uid(2)])
    assert image_of(changed, base=image).cluster.brokers[2].directories == (uid(2),)
    cordoned = BrokerRegistrationChangeRecord(
        broker_id=2, broker_epoch=10, cordoned_log_dirs=[uid(1), uid(2)]
    )
    assert not image_of(cordoned, base=image).cluster.brokers[2].takes_new_partitions
    assert several.has_online_directory(uid(1))


def test_configs_are_stored_by_resource() -> None:
    delta = MetadataDelta(full_image())
    delta.replay(config("retention.ms", None))
    delta.replay(config("log.retention.ms", "7", kind=ResourceType.BROKER, of="1"))
    after = delta.apply(99, 1)
    assert ConfigResource(ResourceType.TOPIC, "orders") not in after.configs
    assert after.broker_config(1) == {"log.retention.ms": "7"}
    assert after.default_broker_config() == {"min.insync.replicas": "1"}
    assert delta.broker_configs_changed(1)
    assert not delta.broker_configs_changed(2)


def test_feature_level_zero_removes_the_feature() -> None:
    after = image_of(FeatureLevelRecord(name="group.version", feature_level=0), base=full_image())
    assert "group.version" not in after.features.levels
    assert after.features.metadata_version == 30
    assert after.features.elr_enabled


def test_acls_scram_and_tokens_can_be_removed() -> None:
    after = image_of(
        RemoveAccessControlEntryRecord(id=uid(5)),
        RemoveUserScramCredentialRecord(name="u", mechanism=1),
        RemoveDelegationTokenRecord(token_id="t"),
        quota("producer_byte_rate", 0, remove=True, client_id=None, user="u"),
        NoOpRecord(),
        ZkMigrationStateRecord(zk_migration_state=0),
        base=full_image(),
    )
    assert not after.acls and not after.scram and not after.delegation_tokens and not after.client_quotas


@pytest.mark.parametrize(
    "record",
    [
        TopicRecord(name="orders", topic_id=uid(77)),
        RemoveTopicRecord(topic_id=uid(77)),
        PartitionChangeRecord(partition_id=9, topic_id=uid(1)),
        PartitionChangeRecord(partition_id=0, topic_id=uid(77)),
        ClearElrRecord(topic_name="nobody"),
        FenceBrokerRecord(id=1, epoch=11),
        UnregisterBrokerRecord(broker_id=3, broker_epoch=10),
        BrokerRegistrationChangeRecord(broker_id=3, broker_epoch=10, fenced=-1),
        FeatureLevelRecord(name="metadata.version", feature_level=31),
    ],
)
def test_inconsistent_records_are_rejected(record: object) -> None:
    with pytest.raises(InconsistentMetadata):
        image_of(record, base=full_image())


def test_partition_record_without_directories_gets_migrating_directories() -> None:
    image = image_of(*topic(3, "old", directories=[]))
    assert image.topics.by_name["old"].partitions[0].directories == (MIGRATING_DIR,)


def test_supported_features_of_brokers_are_stored() -> None:
    controller = full_image().cluster.controllers[1]
    assert controller.features["kraft.version"] == VersionRange(0, 1)
    assert str(VersionRange(0, 1)) == "0-1"
    assert str(VersionRange(1, 1)) == "1"


def test_delta_between_two_images_leads_to_the_second() -> None:
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


def test_delta_between_equal_images_is_empty() -> None:
    image = image_of(*features(), broker(1), *topic(1, "same"))
    delta = MetadataDelta.between(image, image)
    assert delta.apply(image.offset, image.epoch) == image
    assert not delta.topics_changed and not delta.brokers_changed and not delta.configs_changed
