"""Records and images for the tests of metadata, controller and quorum."""

from __future__ import annotations

from collections.abc import Sequence

from moldau.base.ids import Uuid
from moldau.metadata.delta import MetadataDelta
from moldau.metadata.features import default_levels
from moldau.metadata.image import MetadataImage, ResourceType
from moldau.protocol.stored.metadata import (
    AccessControlEntryRecord,
    BrokerEndpoint,
    BrokerFeature,
    BrokerRegistrationChangeRecord,
    ClientQuotaRecord,
    ConfigRecord,
    ControllerEndpoint,
    ControllerFeature,
    DelegationTokenRecord,
    EntityData,
    FeatureLevelRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    TopicRecord,
    UserScramCredentialRecord,
)


def uid(number: int) -> Uuid:
    """Return a readable id that is not reserved."""
    return Uuid(bytes([number]) * 16 if number < 256 else number.to_bytes(16, "big"))


def image_of(*records: object, base: MetadataImage | None = None, epoch: int = 1) -> MetadataImage:
    image = base or MetadataImage.empty()
    delta = MetadataDelta(image)
    delta.replay_all(records)  # type: ignore[arg-type]
    return delta.apply(image.offset + len(records), epoch)


def features(**levels: int) -> list[FeatureLevelRecord]:
    wanted = default_levels() | {name.replace("_", "."): level for name, level in levels.items()}
    return [FeatureLevelRecord(name=name, feature_level=level) for name, level in wanted.items()]


def broker(
    broker_id: int,
    *,
    epoch: int = 10,
    fenced: bool = False,
    rack: str | None = None,
    host: str = "localhost",
    dirs: Sequence[Uuid] | None = None,
    incarnation: int = 200,
) -> RegisterBrokerRecord:
    return RegisterBrokerRecord(
        broker_id=broker_id,
        incarnation_id=uid(incarnation),
        broker_epoch=epoch,
        end_points=[BrokerEndpoint(name="PLAINTEXT", host=host, port=9092, security_protocol=0)],
        features=[BrokerFeature(name="metadata.version", min_supported_version=7, max_supported_version=30)],
        rack=rack,
        fenced=fenced,
        log_dirs=list(dirs) if dirs is not None else [uid(100 + broker_id)],
    )


def topic(
    number: int, name: str, partitions: int = 1, replicas: Sequence[int] = (1,), **values: object
) -> list[TopicRecord | PartitionRecord]:
    records: list[TopicRecord | PartitionRecord] = [TopicRecord(name=name, topic_id=uid(number))]
    for index in range(partitions):
        fields: dict[str, object] = {
            "partition_id": index,
            "topic_id": uid(number),
            "replicas": list(replicas),
            "isr": list(replicas),
            "leader": replicas[0],
            "leader_epoch": 0,
            "partition_epoch": 0,
            "directories": [uid(100 + replica) for replica in replicas],
        }
        records.append(PartitionRecord(**(fields | values)))  # type: ignore[arg-type]
    return records


def config(
    name: str, value: str | None, *, kind: int = ResourceType.TOPIC, of: str = "orders"
) -> ConfigRecord:
    return ConfigRecord(resource_type=kind, resource_name=of, name=name, value=value)


def quota(key: str, value: float, *, remove: bool = False, **entity: str | None) -> ClientQuotaRecord:
    parts = [
        EntityData(entity_type=kind.replace("_", "-"), entity_name=name) for kind, name in entity.items()
    ]
    return ClientQuotaRecord(entity=parts, key=key, value=value, remove=remove)


def full_image() -> MetadataImage:
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
