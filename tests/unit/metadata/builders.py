"""Records and images for the tests of metadata, controller and quorum."""

from __future__ import annotations

from collections.abc import Sequence

from moldau.base.ids import Uuid
from moldau.metadata.delta import MetadataDelta
from moldau.metadata.features import default_levels
from moldau.metadata.image import MetadataImage
from moldau.protocol.stored.metadata import (
    BrokerEndpoint,
    BrokerFeature,
    FeatureLevelRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
)


def uid(number: int) -> Uuid:
    """A readable id that is not reserved."""
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
