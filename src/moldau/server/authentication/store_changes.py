"""Checks changes of the configs of listeners on the broker they belong to, before they are stored.

The controller cannot check them: only this broker has the listeners and the files. A change with an unusable
store is refused with INVALID_REQUEST, as in Kafka, and so is one for a listener that does not exist.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.pool import Pool
from moldau.config.broker.synonyms import listener_of, without_listener
from moldau.config.definition import ConfigError
from moldau.config.dynamic import DELETE, Operation, broker_configs_after
from moldau.server.authentication.tls import NodeTls
from moldau.server.settings import NodeSettings


class StoreChanges:
    def __init__(self, settings: NodeSettings, tls: NodeTls, pool: Pool) -> None:
        self._settings = settings
        self._tls = tls
        self._pool = pool

    async def check_operations(self, name: str, operations: Iterable[Operation]) -> None:
        """Check incremental changes of the broker `name`."""
        changes = list(operations)
        if name == str(self._settings.config.node_id):
            self._check_listeners(each.name for each in changes if each.kind != DELETE)
        if self._concerns(name, (each.name for each in changes)):
            await self._check(broker_configs_after(self._settings.config.dynamic_broker, changes))

    async def check_configs(self, name: str, configs: Mapping[str, str]) -> None:
        """Check all configs of the broker `name`, which replace the existing ones."""
        if name == str(self._settings.config.node_id):
            self._check_listeners(configs)
        if self._concerns(name, (*configs, *self._settings.config.dynamic_broker)):
            await self._check(configs)

    def _concerns(self, name: str, config_names: Iterable[str]) -> bool:
        """Whether the configs of this node change its stores; the controller checks all other changes."""
        is_own = name == str(self._settings.config.node_id)
        return is_own and any((without_listener(each) or each).startswith("ssl.") for each in config_names)

    def _check_listeners(self, names: Iterable[str]) -> None:
        known = {listener.lower() for listener in self._settings.config.protocol_map}
        unknown = [
            each for each in names if (listener := listener_of(each)) is not None and listener not in known
        ]
        if unknown:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"This broker has no such listener (names of listeners are in lower case here): {unknown}",
            )

    async def _check(self, changed: Mapping[str, str]) -> None:
        config = self._settings.config
        try:
            future = config.with_dynamic(config.dynamic_default, changed)
            await self._pool.run(self._tls.check, future)
        except ConfigError as error:
            raise KafkaError(ErrorCode.INVALID_REQUEST, error.sentence) from error
