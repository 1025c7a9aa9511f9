"""Clients of a schema registry: Confluent's, Karapace or Moldau's.

    with RegistryClient("http://localhost:8081") as registry:
        registry.register("orders-value", Schema('"string"'))
        registry.latest("orders-value").schema

The configuration is one or more URLs, or properties by Confluent's names (`settings`). Answers are cached as
`calls` says. `AsyncRegistryClient` has the same methods with `await`. Threads may share a `RegistryClient`.
"""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from moldau.client.registry import calls, references
from moldau.client.registry.cache import BoundedCache
from moldau.client.registry.calls import Call
from moldau.client.registry.settings import RegistrySettings
from moldau.client.registry.types import Schema

if TYPE_CHECKING:
    from moldau.client.registry.transport import AsyncTransport, SyncTransport

P = ParamSpec("P")
T = TypeVar("T")

#: URLs, properties by Confluent's names, or parsed settings.
Where = str | Mapping[str, Any] | RegistrySettings


def _async(
    operation: Callable[P, Call[T]],
) -> Callable[Concatenate[AsyncRegistryClient, P], Coroutine[Any, Any, T]]:
    @functools.wraps(operation)
    async def method(self: AsyncRegistryClient, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self.send(operation(*args, **kwargs))

    return method


def _blocking(operation: Callable[P, Call[T]]) -> Callable[Concatenate[RegistryClient, P], T]:
    @functools.wraps(operation)
    def method(self: RegistryClient, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self.send(operation(*args, **kwargs))

    return method


class _Answers:
    """The cached answers of a client."""

    def __init__(self, settings: RegistrySettings) -> None:
        self._cache = BoundedCache(settings.cache_capacity, time.monotonic)
        self._latest_seconds = settings.latest_ttl_seconds

    def get(self, call: Call[Any]) -> Any:
        return None if call.cached_as is None else self._cache.get(call.cached_as)

    def take(self, call: Call[Any], answer: Any) -> None:
        if call.cached_as is not None:
            self._cache.put(call.cached_as, answer, self._latest_seconds if call.changing else None)
        elif call.method == "DELETE":
            # A version, or everything that is known about a subject, is gone.
            self._cache.clear()

    def clear(self) -> None:
        self._cache.clear()


class AsyncRegistryClient:
    """Connects when first used. Close it, or use it in an `async with`."""

    def __init__(self, where: Where) -> None:
        self.settings = RegistrySettings.of(where)
        self._answers = _Answers(self.settings)
        self._transport: AsyncTransport | None = None

    async def send(self, call: Call[T]) -> T:
        """Return the cached answer of a call, or send it."""
        known: T | None = self._answers.get(call)
        if known is not None:
            return known
        answer = await self.load().send(call)
        self._answers.take(call, answer)
        return answer

    def load(self) -> AsyncTransport:
        """Import what HTTP needs and read key stores, which a loop may do in a thread before first use."""
        if self._transport is None:
            from moldau.client.registry.transport import AsyncTransport

            self._transport = AsyncTransport(self.settings)
        return self._transport

    async def referenced_texts(self, schema: Schema) -> dict[str, str]:
        """Return name → text of all schemas that a schema references, each after the ones it uses."""
        needed = references.texts_of(schema)
        try:
            call = next(needed)
            while True:
                call = needed.send(await self.send(call))
        except StopIteration as end:
            return dict(end.value)

    def clear_caches(self) -> None:
        self._answers.clear()

    async def close(self) -> None:
        if self._transport is not None:
            transport, self._transport = self._transport, None
            await transport.close()

    async def __aenter__(self) -> AsyncRegistryClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    register = _async(calls.register)
    lookup = _async(calls.lookup)
    schema_by_id = _async(calls.schema_by_id)
    schema_by_guid = _async(calls.schema_by_guid)
    version = _async(calls.version)
    latest = _async(calls.latest)
    latest_with_metadata = _async(calls.latest_with_metadata)
    versions = _async(calls.versions)
    referenced_by = _async(calls.referenced_by)
    versions_of_id = _async(calls.versions_of_id)
    ids_of_guid = _async(calls.ids_of_guid)
    subjects = _async(calls.subjects)
    delete_subject = _async(calls.delete_subject)
    delete_version = _async(calls.delete_version)
    schema_types = _async(calls.schema_types)
    contexts = _async(calls.contexts)
    test_compatibility = _async(calls.test_compatibility)
    config = _async(calls.config)
    set_config = _async(calls.set_config)
    delete_config = _async(calls.delete_config)
    mode = _async(calls.mode)
    set_mode = _async(calls.set_mode)
    associations = _async(calls.associations)


class RegistryClient:
    """Connects when first used. Close it, or use it in a `with`."""

    def __init__(self, where: Where) -> None:
        self.settings = RegistrySettings.of(where)
        self._answers = _Answers(self.settings)
        self._transport: SyncTransport | None = None
        self._lock = threading.Lock()

    def send(self, call: Call[T]) -> T:
        """Return the cached answer of a call, or send it."""
        known: T | None = self._answers.get(call)
        if known is not None:
            return known
        answer = self._connected().send(call)
        self._answers.take(call, answer)
        return answer

    def _connected(self) -> SyncTransport:
        with self._lock:
            if self._transport is None:
                from moldau.client.registry.transport import SyncTransport

                self._transport = SyncTransport(self.settings)
            return self._transport

    def referenced_texts(self, schema: Schema) -> dict[str, str]:
        """Return name → text of all schemas that a schema references, each after the ones it uses."""
        needed = references.texts_of(schema)
        try:
            call = next(needed)
            while True:
                call = needed.send(self.send(call))
        except StopIteration as end:
            return dict(end.value)

    def clear_caches(self) -> None:
        self._answers.clear()

    def close(self) -> None:
        with self._lock:
            if self._transport is not None:
                self._transport.close()
                self._transport = None

    def __enter__(self) -> RegistryClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[type[RegistryClient], tuple[RegistrySettings]]:
        """Send a client to another process: its settings, without caches and connections."""
        return (RegistryClient, (self.settings,))

    register = _blocking(calls.register)
    lookup = _blocking(calls.lookup)
    schema_by_id = _blocking(calls.schema_by_id)
    schema_by_guid = _blocking(calls.schema_by_guid)
    version = _blocking(calls.version)
    latest = _blocking(calls.latest)
    latest_with_metadata = _blocking(calls.latest_with_metadata)
    versions = _blocking(calls.versions)
    referenced_by = _blocking(calls.referenced_by)
    versions_of_id = _blocking(calls.versions_of_id)
    ids_of_guid = _blocking(calls.ids_of_guid)
    subjects = _blocking(calls.subjects)
    delete_subject = _blocking(calls.delete_subject)
    delete_version = _blocking(calls.delete_version)
    schema_types = _blocking(calls.schema_types)
    contexts = _blocking(calls.contexts)
    test_compatibility = _blocking(calls.test_compatibility)
    config = _blocking(calls.config)
    set_config = _blocking(calls.set_config)
    delete_config = _blocking(calls.delete_config)
    mode = _blocking(calls.mode)
    set_mode = _blocking(calls.set_mode)
    associations = _blocking(calls.associations)
