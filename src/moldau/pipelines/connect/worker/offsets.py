"""The offsets of one connector, as users see and change them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import TopicPartition
from moldau.client.admin.client import AsyncAdminClient
from moldau.http.errors import ApiError
from moldau.pipelines.connect.data.errors import ConnectError
from moldau.pipelines.connect.sdk import SinkConnector, SourceConnector
from moldau.pipelines.connect.storage.status_state import State
from moldau.pipelines.connect.storage.types import Properties, TargetState
from moldau.pipelines.connect.worker.calls import call_in_thread
from moldau.pipelines.connect.worker.herder import Herder, bad_request, not_found
from moldau.pipelines.connect.worker.task.clients import group_id, shared_properties

_TOPIC, _PARTITION, _OFFSET = "kafka_topic", "kafka_partition", "kafka_offset"
_STOP_S: Final = 10.0
_POLL_S: Final = 0.05
_EXTERNAL: Final = (
    "The Connect framework-managed offsets for this connector have been {0} successfully. However, if this "
    "connector manages offsets externally, they will need to be manually {0} in the system that the "
    "connector uses."
)

Entries = Sequence[tuple[Any, Any]]


class ConnectorOffsets:
    def __init__(self, herder: Herder) -> None:
        self._herder = herder
        self._store = herder.store

    async def get(self, name: str) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        """Return partitions and offsets."""
        config = self._config(name)
        if isinstance(self._herder.plugins.connector(config["connector.class"]), SourceConnector):
            return await self._store.all_offsets(name)
        async with self._admin() as admin:
            found = await admin.list_group_offsets(group_id(config, name))
        return [
            ({_PARTITION: partition, _TOPIC: topic}, {_OFFSET: each.offset})
            for (topic, partition), each in found.items()
            if not isinstance(each, KafkaError)
        ]

    async def alter(self, name: str, entries: Entries) -> str:
        """Set offsets; null resets one. Return the message for the user."""
        config = await self._stopped(name)
        resolved = self._herder.providers.resolve(config)
        connector = self._herder.plugins.connector(config["connector.class"])
        if isinstance(connector, SourceConnector):
            known = await self._altered(name, connector, resolved, entries)
        elif isinstance(connector, SinkConnector):
            known = await self._alter_sink(name, connector, resolved, _parsed(entries))
        return _message(known, "altered")

    async def reset(self, name: str) -> str:
        """Forget all offsets, so that the connector begins again. Return the message for the user."""
        config = await self._stopped(name)
        resolved = self._herder.providers.resolve(config)
        connector = self._herder.plugins.connector(config["connector.class"])
        if isinstance(connector, SourceConnector):
            entries = [(each, None) for each, _ in await self._store.all_offsets(name)]
            known = await self._altered(name, connector, resolved, entries)
        elif isinstance(connector, SinkConnector):
            known = await self._reset_sink(name, connector, resolved)
        return _message(known, "reset")

    def _config(self, name: str) -> Properties:
        config = self._store.configs.connectors.get(name)
        if config is None:
            raise not_found(f"Connector {name} not found")
        return config

    async def _stopped(self, name: str) -> Properties:
        """Return the config of a connector whose offsets may be changed: it is stopped, with all tasks."""
        self._herder.require_leader()
        config, configs = self._config(name), self._store.configs
        if configs.target_state(name) is not TargetState.STOPPED or configs.task_counts.get(name):
            raise bad_request(
                "Connectors must be in the STOPPED state before their offsets can be modified. This can be "
                "done for the specified connector by issuing a 'PUT' request to the "
                f"'/connectors/{name}/stop' endpoint"
            )
        try:
            async with asyncio.timeout(self._herder.settings.shutdown_timeout_s + _STOP_S):
                await self._tasks_stopped(name)
        except TimeoutError:
            message = f"The tasks of connector {name} have not stopped yet; retry later."
            raise ApiError(500, 500, message) from None
        return config

    async def _tasks_stopped(self, name: str) -> None:
        """Wait until no task stores its last offsets: here, or as far as the statuses of others tell."""
        await self._herder.runtime.tasks_stopped(name)
        await self._store.refresh_statuses()
        while any(each.state is not State.UNASSIGNED for each in self._tasks(name)):
            await asyncio.sleep(_POLL_S)
            await self._store.refresh_statuses()

    def _tasks(self, name: str) -> list[Any]:
        return list(self._store.statuses.tasks.get(name, {}).values())

    async def _altered(
        self, name: str, connector: SourceConnector, config: Mapping[str, str], entries: Entries
    ) -> bool:
        try:
            known = await call_in_thread(f"offsets {name}", connector.alter_offsets, config, entries)
        except ConnectError as error:
            raise ApiError(500, 500, str(error)) from None
        if self._herder.settings.exactly_once:
            # A task that did not stop in time could still commit a transaction with its offsets.
            await self._herder.fence(name)
        if entries:
            await self._store.write_offsets(name, entries)
        return known

    async def _alter_sink(
        self,
        name: str,
        connector: SinkConnector,
        config: Mapping[str, str],
        offsets: Mapping[TopicPartition, int | None],
    ) -> bool:
        known = await self._told(connector, config, offsets)
        group = group_id(config, name)
        kept = {each: at for each, at in offsets.items() if at is not None}
        removed = [each for each, at in offsets.items() if at is None]
        async with self._admin() as admin:
            results = [await admin.alter_group_offsets(group, kept)] if kept else []
            results += [await admin.delete_group_offsets(group, removed)] if removed else []
        for error in (each for result in results for each in result.values() if each is not None):
            raise ApiError(500, 500, f"Failed to alter consumer group offsets for connector {name}: {error}")
        return known

    async def _reset_sink(self, name: str, connector: SinkConnector, config: Mapping[str, str]) -> bool:
        group = group_id(config, name)
        async with self._admin() as admin:
            found = await admin.list_group_offsets(group)
            known = await self._told(connector, config, dict.fromkeys(found))
            error = (await admin.delete_groups([group]))[group]
        if error is not None and error.code is not ErrorCode.GROUP_ID_NOT_FOUND:
            raise ApiError(500, 500, f"Failed to reset consumer group offsets for connector {name}: {error}")
        return known

    @staticmethod
    async def _told(
        connector: SinkConnector, config: Mapping[str, str], offsets: Mapping[TopicPartition, int | None]
    ) -> bool:
        try:
            return await call_in_thread("offsets of a sink", connector.alter_offsets, config, offsets)
        except ConnectError as error:
            raise ApiError(500, 500, str(error)) from None

    def _admin(self) -> AsyncAdminClient:
        return AsyncAdminClient(shared_properties(self._herder.settings.properties))


def _message(known: bool, done: str) -> str:
    if known:
        return f"The offsets for this connector have been {done} successfully"
    return _EXTERNAL.format(done)


def _parsed(entries: Entries) -> dict[TopicPartition, int | None]:
    """Return the offsets of a sink; `ApiError` 400 says what is wrong with them."""
    result: dict[TopicPartition, int | None] = {}
    for partition, offset in entries:
        result[_partition(partition)] = _offset(offset)
    return result


def _partition(value: Any) -> TopicPartition:
    if value is None:
        raise bad_request("The partition for a sink connector offset cannot be null or missing")
    if not isinstance(value, dict) or _TOPIC not in value or _PARTITION not in value:
        raise bad_request(
            f"The partition for a sink connector offset must contain the keys '{_TOPIC}' and '{_PARTITION}'"
        )
    if value[_TOPIC] is None:
        raise bad_request("Kafka topic names must be valid strings and may not be null")
    if value[_PARTITION] is None:
        raise bad_request("Kafka partitions must be valid numbers and may not be null")
    return TopicPartition(str(value[_TOPIC]), _number(value[_PARTITION], "partition", "Partition"))


def _offset(value: Any) -> int | None:
    if value is None:
        return None
    if not isinstance(value, dict) or _OFFSET not in value:
        raise bad_request(
            f"The offset for a sink connector should either be null or contain the key '{_OFFSET}'"
        )
    return _number(value[_OFFSET], "offset", "Offset")


def _number(value: Any, kind: str, title: str) -> int:
    try:
        if isinstance(value, bool | float):
            raise ValueError
        return int(value)
    except (TypeError, ValueError):
        raise bad_request(
            f"Failed to parse the following Kafka {kind} value in the provided offsets: '{value}'. {title} "
            "values for sink connectors need to be integers."
        ) from None
