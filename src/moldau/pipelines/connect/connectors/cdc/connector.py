"""The connector: one task, because a replication slot has one reader."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from moldau.pipelines.connect.config.definition import ConfigValue
from moldau.pipelines.connect.connectors.cdc.offsets import check_offset
from moldau.pipelines.connect.connectors.cdc.settings import check_postgres, postgres_config
from moldau.pipelines.connect.connectors.cdc.task import PostgresTask
from moldau.pipelines.connect.sdk import ExactlyOnceSupport, Offset, Partition, SourceConnector, SourceTask


class PostgresConnector(SourceConnector):
    config = postgres_config()

    def validate(self, properties: Mapping[str, str]) -> dict[str, ConfigValue]:
        values = super().validate(properties)
        check_postgres(values)
        return values

    def task(self) -> SourceTask:
        return PostgresTask(self.config)

    def exactly_once_support(self, properties: Mapping[str, str]) -> ExactlyOnceSupport:
        return ExactlyOnceSupport.SUPPORTED

    def alter_offsets(
        self, properties: Mapping[str, str], offsets: Sequence[tuple[Partition, Offset | None]]
    ) -> bool:
        for partition, offset in offsets:
            check_offset(partition, offset)
        return True
