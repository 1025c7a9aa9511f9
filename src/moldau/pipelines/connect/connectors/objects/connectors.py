"""The connectors of each store: Confluent's class names and settings, and folders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from moldau.base.ids import TopicPartition
from moldau.pipelines.connect.config.definition import (
    NO_DEFAULT,
    ConfigDef,
    ConfigType,
    ConfigValue,
    Importance,
    Range,
    ValidString,
)
from moldau.pipelines.connect.connectors.objects.formats.catalog import format_of
from moldau.pipelines.connect.connectors.objects.sink import FilesSinkTask, check_settings, common_names
from moldau.pipelines.connect.connectors.objects.source import (
    FILE,
    RECORDS,
    TASK_COUNT,
    TASK_INDEX,
    FilesSourceTask,
)
from moldau.pipelines.connect.connectors.objects.storage import AZURE, FOLDER, GCS, S3, StorageKind
from moldau.pipelines.connect.data.errors import ConfigError, ConnectError
from moldau.pipelines.connect.sdk import (
    ExactlyOnceSupport,
    Offset,
    Partition,
    SinkConnector,
    SinkTask,
    SourceConnector,
    SourceTask,
)

_HIGH, _MEDIUM, _LOW = Importance.HIGH, Importance.MEDIUM, Importance.LOW
_STRING, _INT, _LONG, _LIST = ConfigType.STRING, ConfigType.INT, ConfigType.LONG, ConfigType.LIST
_SINK: Final[Sequence[tuple[Any, ...]]] = (
    (
        "format.class",
        _STRING,
        "json",
        _HIGH,
        "Format: json, avro, parquet, csv, text or bytearray, or a class of Confluent.",
    ),
    (
        "flush.size",
        _INT,
        NO_DEFAULT,
        _HIGH,
        "Records of a topic partition after which its files are written.",
        Range(1),
    ),
    (
        "rotate.interval.ms",
        _LONG,
        -1,
        _HIGH,
        "Time between the first and the last record of a file in ms, by the timestamp extractor.",
    ),
    (
        "rotate.schedule.interval.ms",
        _LONG,
        -1,
        _MEDIUM,
        "Time in ms after which files are written by the wall clock; not exactly once.",
    ),
    ("topics.dir", _STRING, "topics", _HIGH, "Folder of all topics."),
    (
        "partitioner.class",
        _STRING,
        "Default",
        _HIGH,
        "Partitioner: Default, Field, TimeBased, Daily or Hourly.",
    ),
    ("partition.field.name", _LIST, "", _MEDIUM, "Fields of the field partitioner."),
    ("partition.duration.ms", _LONG, -1, _MEDIUM, "Time of a folder of the time-based partitioner in ms."),
    ("path.format", _STRING, "", _MEDIUM, "Folders of the time-based partitioner: 'year'=YYYY/'month'=MM"),
    ("locale", _STRING, "en", _MEDIUM, "Language of names of months and days; only English is available."),
    ("timezone", _STRING, "UTC", _MEDIUM, "Time zone of folders and of the schedule."),
    (
        "timestamp.extractor",
        _STRING,
        "Wallclock",
        _MEDIUM,
        "Time of a record: Wallclock, Record or RecordField.",
    ),
    ("timestamp.field", _STRING, "timestamp", _MEDIUM, "Field with the time of a record."),
    ("directory.delim", _STRING, "/", _LOW, "Separator of folders."),
    ("file.delim", _STRING, "+", _LOW, "Separator in names of files."),
    ("filename.offset.zero.pad.width", _INT, 10, _LOW, "Digits of the offset in names of files.", Range(0)),
    (
        "schema.compatibility",
        _STRING,
        "NONE",
        _LOW,
        "NONE: a changed schema begins a new file.",
        ValidString(("NONE",)),
    ),
    (
        "behavior.on.null.values",
        _STRING,
        "fail",
        _LOW,
        "Records without value: fail (they are reported) or ignore.",
        ValidString(("fail", "ignore")),
    ),
    (
        "compression.type",
        _STRING,
        "none",
        _LOW,
        "Compression of text formats: none or gzip.",
        ValidString(("none", "gzip")),
    ),
    (
        "parquet.codec",
        _STRING,
        "snappy",
        _LOW,
        "Compression of Parquet.",
        ValidString(("none", "snappy", "gzip", "zstd", "lz4", "brotli")),
    ),
    ("avro.codec", _STRING, "null", _LOW, "Compression of Avro.", ValidString(("null", "deflate", "bzip2"))),
    ("format.bytearray.separator", _STRING, "\\n", _LOW, "Bytes between the records of ByteArrayFormat."),
    ("retry.backoff.ms", _LONG, 5000, _LOW, "Time until a failed file is written again, in ms.", Range(0)),
)
_SOURCE: Final[Sequence[tuple[Any, ...]]] = (
    (
        "format.class",
        _STRING,
        "json",
        _HIGH,
        "Format: json, avro, parquet, csv, text or bytearray, or a class of Confluent.",
    ),
    (
        "topic",
        _STRING,
        None,
        _HIGH,
        "Topic to write to; by default the name of the first folder, as the sinks write them.",
    ),
    (
        "topics.dir",
        _STRING,
        "topics",
        _HIGH,
        "Folder to read, with all folders in it; empty for the whole store.",
    ),
    ("poll.interval.ms", _LONG, 5000, _MEDIUM, "Time between two looks for new files, in ms.", Range(0)),
    ("record.batch.max.size", _INT, 1000, _MEDIUM, "Records of a poll.", Range(1)),
    (
        "after.processing",
        _STRING,
        "keep",
        _MEDIUM,
        "What to do with a file that was read: keep, delete or move.",
        ValidString(("keep", "delete", "move")),
    ),
    ("processed.dir", _STRING, "processed", _LOW, "Folder to move files to."),
    (
        "csv.first.row.as.header",
        ConfigType.BOOLEAN,
        True,
        _LOW,
        "Whether the first line of CSV contains the names of the columns.",
    ),
    ("csv.delimiter", _STRING, ",", _LOW, "Separator of the columns of CSV."),
)
_S3_NAMES: Final = {"compression.type": "s3.compression.type"}
_GCS_NAMES: Final = {"compression.type": "gcs.compression.type"}
_AZURE_NAMES: Final = {"compression.type": "az.compression.type"}


def _definition(
    kind: StorageKind, settings: Sequence[tuple[Any, ...]], renamed: Mapping[str, str], **defaults: Any
) -> ConfigDef:
    definition = kind.define(ConfigDef())
    for name, type_, default, importance, text, *validator in settings:
        value = defaults.get(name.replace(".", "_"), default)
        checked = validator[0] if validator else None
        definition.define(renamed.get(name, name), type_, value, importance, text, validator=checked)
    return definition


class FilesSinkConnector(SinkConnector):
    """The base of the sinks. `renamed` are settings with other names in Confluent's connector."""

    kind: ClassVar[StorageKind] = FOLDER
    renamed: ClassVar[Mapping[str, str]] = {}

    def validate(self, properties: Mapping[str, str]) -> dict[str, ConfigValue]:
        values = super().validate(properties)
        if not any(each.errors for each in values.values()):
            try:
                check_settings(
                    common_names({name: each.value for name, each in values.items()}, self.renamed)
                )
            except ConfigError as error:
                where = "partitioner.class" if "artition" in str(error) else "format.class"
                values[where].errors.append(str(error))
        return values

    def task_configs(self, max_tasks: int) -> list[Mapping[str, str]]:
        return [self.properties] * max_tasks

    def task(self) -> SinkTask:
        return FilesSinkTask(self.config, self.kind, self.renamed)

    def alter_offsets(
        self, properties: Mapping[str, str], offsets: Mapping[TopicPartition, int | None]
    ) -> bool:
        """Files follow the offsets of the group: files of the same first offset are replaced."""
        return True


class S3SinkConnector(FilesSinkConnector):
    kind = S3
    renamed = _S3_NAMES
    config = _definition(S3, _SINK, _S3_NAMES)


class GcsSinkConnector(FilesSinkConnector):
    kind = GCS
    renamed = _GCS_NAMES
    config = _definition(GCS, _SINK, _GCS_NAMES)


class AzureBlobStorageSinkConnector(FilesSinkConnector):
    kind = AZURE
    renamed = _AZURE_NAMES
    config = _definition(AZURE, _SINK, _AZURE_NAMES)


class DirectorySinkConnector(FilesSinkConnector):
    config = _definition(FOLDER, _SINK, {}, topics_dir="")


class FilesSourceConnector(SourceConnector):
    """The base of the sources."""

    kind: ClassVar[StorageKind] = FOLDER

    def validate(self, properties: Mapping[str, str]) -> dict[str, ConfigValue]:
        values = super().validate(properties)
        try:
            format_of(values["format.class"].value or "")
        except ConfigError as error:
            values["format.class"].errors.append(str(error))
        return values

    def task_configs(self, max_tasks: int) -> list[Mapping[str, str]]:
        numbers = {TASK_COUNT: str(max_tasks)}
        return [{**self.properties, **numbers, TASK_INDEX: str(index)} for index in range(max_tasks)]

    def task(self) -> SourceTask:
        return FilesSourceTask(self.config, self.kind)

    def exactly_once_support(self, properties: Mapping[str, str]) -> ExactlyOnceSupport:
        return ExactlyOnceSupport.SUPPORTED

    def alter_offsets(
        self, properties: Mapping[str, str], offsets: Sequence[tuple[Partition, Offset | None]]
    ) -> bool:
        for partition, offset in offsets:
            if set(partition) != {FILE}:
                raise ConnectError(f"A partition of files is {{'{FILE}': PATH}}, not {dict(partition)}")
            if offset is not None and not isinstance(offset.get(RECORDS), int):
                raise ConnectError(
                    f"An offset of files contains '{RECORDS}', the number of records that were read."
                )
        return True


class S3SourceConnector(FilesSourceConnector):
    kind = S3
    config = _definition(S3, _SOURCE, {})


class GcsSourceConnector(FilesSourceConnector):
    kind = GCS
    config = _definition(GCS, _SOURCE, {})


class AzureBlobStorageSourceConnector(FilesSourceConnector):
    kind = AZURE
    config = _definition(AZURE, _SOURCE, {})


class DirectorySourceConnector(FilesSourceConnector):
    config = _definition(FOLDER, _SOURCE, {}, topics_dir="", poll_interval_ms=1000)
