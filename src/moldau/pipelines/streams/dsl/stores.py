"""Definitions of state stores for custom processors.

    builder.add_state_store(Stores.key_value_store("sums", Serdes.string(), Serdes.long()))

A store is kept in Spark's state store. Unless logging is disabled, every change is also written to the
changelog topic `<application.id>-<store>-changelog`, from which interactive queries read it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from moldau.pipelines.streams.dsl.serdes import Serde

StoreKind = Literal["key-value", "window", "session"]

_DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class StoreBuilder:
    """The definition of a state store."""

    name: str
    kind: StoreKind
    key_serde: Serde
    value_serde: Serde
    #: Retention of windows and sessions after the newest one of their key.
    retention_ms: int = _DAY_MS
    window_size_ms: int = 0
    logging: bool = True

    def with_logging_disabled(self) -> StoreBuilder:
        """Disable the changelog; then only the processor can read the store."""
        return replace(self, logging=False)


class Stores:
    """Creates definitions of state stores."""

    @staticmethod
    def key_value_store(name: str, key_serde: Serde, value_serde: Serde) -> StoreBuilder:
        return StoreBuilder(name, "key-value", key_serde, value_serde)

    @staticmethod
    def window_store(
        name: str, retention_ms: int, window_size_ms: int, key_serde: Serde, value_serde: Serde
    ) -> StoreBuilder:
        if retention_ms < window_size_ms:
            raise ValueError(
                f"{name}: the retention of {retention_ms} ms is shorter than the window size of "
                f"{window_size_ms} ms"
            )
        return StoreBuilder(name, "window", key_serde, value_serde, retention_ms, window_size_ms)

    @staticmethod
    def session_store(name: str, retention_ms: int, key_serde: Serde, value_serde: Serde) -> StoreBuilder:
        return StoreBuilder(name, "session", key_serde, value_serde, retention_ms)
