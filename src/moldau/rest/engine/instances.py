"""The consumer instances of v2: created, found by group and name, expired when idle, bounded in number."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Hashable, Iterator, Mapping
from concurrent.futures import Executor
from contextlib import contextmanager
from typing import Any, Final

from moldau.base.errors import KafkaError
from moldau.base.json_log import event
from moldau.rest import errors
from moldau.rest.engine.consumer import PolledConsumer
from moldau.rest.engine.instance import Instance, InstanceConfig
from moldau.rest.settings import RestSettings

logger = logging.getLogger(__name__)

#: librdkafka's names for Java's.
_RESETS: Final = {"none": "error"}


class Instances:
    def __init__(self, settings: RestSettings, pool: Executor) -> None:
        self._settings, self.pool = settings, pool
        self._instances: dict[tuple[str, str], Instance] = {}
        self._reserved = 0
        self._closing: set[asyncio.Future[None]] = set()

    def __len__(self) -> int:
        return len(self._instances)

    @contextmanager
    def reserve(self) -> Iterator[None]:
        """Count one more consumer for a time: a streaming read. They share the limit of the instances."""
        self._require_room()
        self._reserved += 1
        try:
            yield
        finally:
            self._reserved -= 1

    def _require_room(self) -> None:
        if len(self._instances) + self._reserved >= self._settings.max_consumers:
            raise errors.too_many_consumers(self._settings.max_consumers)

    def create(
        self, group: str, config: InstanceConfig, properties: Mapping[str, Any], owner: Hashable
    ) -> Instance:
        server = f"{self._settings.id}-" if self._settings.id else ""
        name = config.name or f"rest-consumer-{server}{uuid.uuid4()}"
        if (group, name) in self._instances:
            raise errors.already_exists()
        self._require_room()
        wanted = {**properties, "group.id": group}
        if config.auto_offset_reset is not None:
            wanted["auto.offset.reset"] = _RESETS.get(config.auto_offset_reset, config.auto_offset_reset)
        if config.auto_commit is not None:
            wanted["enable.auto.commit"] = config.auto_commit
        try:
            consumer = PolledConsumer(wanted, self.pool)
        except KafkaError as error:
            raise errors.unprocessable(42204, f"Invalid consumer configuration: {error}") from None
        instance = Instance(group, name, config, consumer, owner)
        self._instances[(group, name)] = instance
        self.touch(instance)
        return instance

    def get(self, group: str, name: str, owner: Hashable) -> Instance:
        instance = self._instances.get((group, name))
        if instance is None or instance.owner != owner:
            raise errors.instance_not_found()
        self.touch(instance)
        return instance

    def touch(self, instance: Instance) -> None:
        instance.expires = asyncio.get_running_loop().time() + self._settings.instance_timeout_ms / 1000

    async def delete(self, group: str, name: str, owner: Hashable) -> None:
        instance = self.get(group, name, owner)
        del self._instances[(group, name)]
        await instance.consumer.close()

    def expire(self) -> None:
        """Close the instances that were not used for `consumer.instance.timeout.ms`."""
        now = asyncio.get_running_loop().time()
        for key, instance in list(self._instances.items()):
            if instance.users == 0 and instance.expires <= now:
                logger.info(
                    "Consumer instance %s of group %s expired",
                    instance.name,
                    instance.group,
                    extra=event("rest.consumer_expired", group=instance.group, instance=instance.name),
                )
                del self._instances[key]
                task = asyncio.ensure_future(instance.consumer.close())
                self._closing.add(task)
                task.add_done_callback(self._closing.discard)

    async def close(self) -> None:
        closing = [each.consumer.close() for each in self._instances.values()]
        self._instances.clear()
        await asyncio.gather(*closing, *self._closing, return_exceptions=True)
