from __future__ import annotations

import pytest

from moldau.base.ids import MIGRATING_DIR
from moldau.metadata.delta import MetadataDelta
from moldau.metadata.errors import InconsistentMetadata
from moldau.metadata.features import VersionRange
from moldau.metadata.image import ConfigResource, MetadataImage, ResourceType
from moldau.metadata.image_records import image_records
from moldau.metadata.loader import MetadataLoader
from moldau.metadata.records import RECORD_TYPES, decode_record, encode_record
from moldau.protocol.stored.metadata import (
    AbortTransactionRecord,
    AccessControlEntryRecord,
    BeginTransactionRecord,
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    ClientQuotaRecord,
    ConfigRecord,
    ControllerEndpoint,
    ControllerFeature,
    DelegationTokenRecord,
    EndTransactionRecord,
    EntityData,
    FeatureLevelRecord,
    FenceBrokerRecord,
    NoOpRecord,
    PartitionChangeRecord,
    ProducerIdsRecord,
    RegisterControllerRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveTopicRecord,
    RemoveUserScramCredentialRecord,
    TopicRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
    UserScramCredentialRecord,
    ZkMigrationStateRecord,
)
from tests.unit.metadata.builders import broker, features, image_of, topic, uid


def config(
    name: str, value: str | None, *, kind: int = ResourceType.TOPIC, of: str = "orders"
) -> ConfigRecord:
    return ConfigRecord(resource_type=kind, resource_name=of, name=name, value=value)


def quota(key: str, value: float, *, remove: bool = False, **entity: str | None) -> ClientQuotaRecord:
    parts = [
        EntityData(entity_type=kind.replace("_", "-"), entity_name=name) for kind, name in entity.items()
    ]
    return ClientQuotaRecord(entity=parts, key=key, value=value, remove=remove)


def everything() -> MetadataImage:
    return image_of(
        *features(group_version=1),
        broker(1, rack="a"),
        broker(2, fenced=True, dirs=[uid(1), uid(2)]),
        BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=10, cordoned_log_dirs=[]),
        RegisterControllerRecord(
            controller_id=1,
            incarnation_id=uid(9),
            end_points=[ControllerEndpoint(name="CONTROLLER", host="::1", port=9093)],
            features=[
                ControllerFeature(name="kraft.version", min_supported_version=0, max_supported_version=1)
            ],
        ),
        *topic(1, "orders", 3, (1, 2)),
        *topic(2, "a.b", eligible_leader_replicas=[2], last_known_elr=[1], leader_recovery_state=1),
        config("retention.ms", "1000"),
        config("min.insync.replicas", "1", kind=ResourceType.BROKER, of=""),
        quota("producer_byte_rate", 1024.5, user="u", client_id=None),
        ProducerIdsRecord(broker_id=1, broker_epoch=10, next_producer_id=2000),
        AccessControlEntryRecord(id=uid(5), principal="User:a", host="*", resource_name="orders"),
        UserScramCredentialRecord(
            name="u", mechanism=1, salt=b"s", stored_key=b"k", server_key=b"v", iterations=9
        ),
        DelegationTokenRecord(owner="User:a", token_id="t", renewers=["User:b"]),
    )


def test_an_image_survives_being_written_as_records() -> None:
    image = everything()
    values = [encode_record(record, 30) for record in image_records(image)]
    again = MetadataDelta(MetadataImage.empty())
    again.replay_all(decode_record(value) for value in values)
    assert again.apply(image.offset, image.epoch) == image


def test_every_record_type_can_be_replayed() -> None:
    from moldau.metadata import delta

    assert set(delta._REPLAY) == set(RECORD_TYPES.values())


def test_an_image_never_changes() -> None:
    before = everything()
    frozen = everything()
    image_of(
        RemoveTopicRecord(topic_id=uid(1)),
        PartitionChangeRecord(partition_id=0, topic_id=uid(2), isr=[]),
        config("retention.ms", None),
        UnregisterBrokerRecord(broker_id=2, broker_epoch=10),
        quota("producer_byte_rate", 0, remove=True, user="u", client_id=None),
        base=before,
    )
    assert before == frozen


def test_what_did_not_change_is_shared() -> None:
    before = everything()
    after = image_of(config("retention.ms", "5"), base=before)
    assert after.topics is before.topics
    assert after.cluster is before.cluster
    assert after.offset == before.offset + 1


def test_a_partition_change_merges() -> None:
    before = everything()
    delta = MetadataDelta(before)
    delta.replay(PartitionChangeRecord(partition_id=1, topic_id=uid(1), isr=[2], leader=2))
    partition = delta.apply(99, 4).topics.by_name["orders"].partitions[1]
    assert (partition.leader, partition.leader_epoch, partition.partition_epoch) == (2, 1, 1)
    assert partition.isr == (2,)
    assert partition.replicas == (1, 2)
    assert delta.topics_changed == {uid(1): {1}}


def test_without_a_leader_in_the_change_the_leader_epoch_stays() -> None:
    after = image_of(PartitionChangeRecord(partition_id=1, topic_id=uid(1), isr=[1]), base=everything())
    partition = after.topics.by_id[uid(1)].partitions[1]
    assert (partition.leader, partition.leader_epoch, partition.partition_epoch) == (1, 0, 1)


def test_clearing_eligible_leaders_of_one_topic_and_of_all() -> None:
    for record in (ClearElrRecord(topic_name="a.b"), ClearElrRecord()):
        partition = image_of(record, base=everything()).topics.by_name["a.b"].partitions[0]
        assert (partition.elr, partition.last_known_elr, partition.partition_epoch) == ((), (), 1)


def test_a_removed_topic_takes_its_configs_along() -> None:
    delta = MetadataDelta(everything())
    delta.replay(RemoveTopicRecord(topic_id=uid(1)))
    after = delta.apply(99, 1)
    assert "orders" not in after.topics.by_name
    assert after.topic_config("orders") == {}
    assert [gone.name for gone in delta.topics_deleted.values()] == ["orders"]
    assert delta.topics_changed == {}
    assert delta.topic_configs_changed() == {"orders"}


def test_a_name_can_be_used_again_at_once() -> None:
    delta = MetadataDelta(everything())
    delta.replay(RemoveTopicRecord(topic_id=uid(1)))
    delta.replay_all(topic(7, "orders"))
    after = delta.apply(99, 1)
    assert after.topics.by_name["orders"].id == uid(7)
    assert uid(1) not in after.topics.by_id
    assert delta.topics_created == {uid(7)}


def test_a_topic_that_came_and_went_leaves_nothing() -> None:
    delta = MetadataDelta(everything())
    delta.replay_all([*topic(7, "short"), RemoveTopicRecord(topic_id=uid(7)), *topic(8, "short")])
    assert delta.topics_created == {uid(8)}
    assert not delta.topics_deleted


def test_brokers_are_fenced_and_unfenced_in_both_forms() -> None:
    image = image_of(FenceBrokerRecord(id=1, epoch=10), base=everything())
    assert image.cluster.brokers[1].fenced
    image = image_of(UnfenceBrokerRecord(id=1, epoch=10), base=image)
    assert image.cluster.is_active(1)
    image = image_of(BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=10, fenced=1), base=image)
    assert image.cluster.brokers[1].fenced
    image = image_of(BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=10, fenced=-1), base=image)
    assert image.cluster.is_active(1)
    change = BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=10, in_controlled_shutdown=1)
    assert not image_of(change, base=image).cluster.is_active(1)


def test_directories_of_a_broker() -> None:
    image = everything()
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


def test_configs_by_resource() -> None:
    delta = MetadataDelta(everything())
    delta.replay(config("retention.ms", None))
    delta.replay(config("log.retention.ms", "7", kind=ResourceType.BROKER, of="1"))
    after = delta.apply(99, 1)
    assert ConfigResource(ResourceType.TOPIC, "orders") not in after.configs
    assert after.broker_config(1) == {"log.retention.ms": "7"}
    assert after.default_broker_config() == {"min.insync.replicas": "1"}
    assert delta.broker_configs_changed(1)
    assert not delta.broker_configs_changed(2)


def test_levels_of_zero_are_left_out() -> None:
    after = image_of(FeatureLevelRecord(name="group.version", feature_level=0), base=everything())
    assert "group.version" not in after.features.levels
    assert after.features.metadata_version == 30
    assert after.features.elr_enabled


def test_kept_records_can_be_removed() -> None:
    after = image_of(
        RemoveAccessControlEntryRecord(id=uid(5)),
        RemoveUserScramCredentialRecord(name="u", mechanism=1),
        RemoveDelegationTokenRecord(token_id="t"),
        quota("producer_byte_rate", 0, remove=True, client_id=None, user="u"),
        NoOpRecord(),
        ZkMigrationStateRecord(zk_migration_state=0),
        base=everything(),
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
def test_contradictions_are_found(record: object) -> None:
    with pytest.raises(InconsistentMetadata):
        image_of(record, base=everything())


class TestLoader:
    def test_a_transaction_becomes_visible_at_its_end(self) -> None:
        loader = MetadataLoader(everything())
        start = loader.image.offset + 1
        loader.replay([config("a", "1"), BeginTransactionRecord(name="x"), config("b", "2")], start, 5)
        delta, image = loader.publish()
        assert image.topic_config("orders") == {"retention.ms": "1000", "a": "1"}
        assert (image.offset, image.epoch) == (start, 5)
        assert delta.topic_configs_changed() == {"orders"}
        loader.replay([config("c", "3"), EndTransactionRecord()], start + 3, 5)
        _, image = loader.publish()
        assert image.topic_config("orders") == {"retention.ms": "1000", "a": "1", "b": "2", "c": "3"}
        assert image.offset == start + 4

    def test_an_aborted_transaction_leaves_nothing(self) -> None:
        loader = MetadataLoader(everything())
        loader.replay([BeginTransactionRecord(), config("b", "2")], 100, 5)
        assert loader.transaction_start == 100
        loader.replay([AbortTransactionRecord(), config("c", "3")], 102, 6)
        _, image = loader.publish()
        assert image.topic_config("orders") == {"retention.ms": "1000", "c": "3"}
        assert (image.offset, image.epoch) == (103, 6)

    def test_marks_out_of_order_are_found(self) -> None:
        for records in ([EndTransactionRecord()], [AbortTransactionRecord()], [BeginTransactionRecord()] * 2):
            with pytest.raises(InconsistentMetadata):
                MetadataLoader().replay(records, 0, 1)

    def test_control_batches_move_the_offset_only(self) -> None:
        loader = MetadataLoader(everything())
        loader.advance(200, 7)
        delta, image = loader.publish()
        assert (image.offset, image.epoch) == (200, 7)
        assert not delta.topics_changed and not delta.configs_changed


def test_partition_without_directories_is_told_later() -> None:
    image = image_of(*topic(3, "old", directories=[]))
    assert image.topics.by_name["old"].partitions[0].directories == (MIGRATING_DIR,)


def test_supported_features_are_kept() -> None:
    controller = everything().cluster.controllers[1]
    assert controller.features["kraft.version"] == VersionRange(0, 1)
    assert str(VersionRange(0, 1)) == "0-1"
    assert str(VersionRange(1, 1)) == "1"
