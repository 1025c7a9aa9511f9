"""Subject name strategies: under which subject the schema of a record is registered.

A strategy is a function of topic, whether the record part is the key, and the name of the record type. It is
configured as a function, by a short name (`TOPIC`), or by the name of Confluent's class.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from moldau.base.errors import ErrorCode, KafkaError
from moldau.client.registry.types import RegistryError
from moldau.client.serdes import SerializationError

if TYPE_CHECKING:
    from moldau.client.registry.client import RegistryClient

#: Topic, whether it is the key, record name → subject; None if the record name is needed and unknown.
SubjectNameStrategy = Callable[[str, bool, str | None], str | None]
#: The name of an imported file or schema → subject.
ReferenceSubjectNameStrategy = Callable[[str], str]


def topic_name(topic: str, key: bool, record: str | None) -> str:
    return f"{topic}-{'key' if key else 'value'}"


def record_name(topic: str, key: bool, record: str | None) -> str | None:
    return record


def topic_record_name(topic: str, key: bool, record: str | None) -> str | None:
    return None if record is None else f"{topic}-{record}"


class Associated:
    """The subject that the registry associates with the topic; the topic name strategy if there is none."""

    def __init__(
        self,
        registry: RegistryClient,
        cluster_id: str = "-",
        fallback: SubjectNameStrategy | None = topic_name,
    ) -> None:
        self._registry = registry
        self._cluster_id = cluster_id
        self._fallback = fallback

    def __call__(self, topic: str, key: bool, record: str | None) -> str | None:
        try:
            found = self._registry.associations(topic, self._cluster_id, ("key" if key else "value",))
        except RegistryError as error:
            if not error.not_found:
                raise
            found = []
        if len(found) > 1:
            raise SerializationError(f"{topic}: several subjects are associated with the topic")
        if found:
            return found[0].subject
        if self._fallback is None:
            raise SerializationError(f"{topic}: no subject is associated with the topic")
        return self._fallback(topic, key, record)


class InContexts:
    """The subject of another strategy, in the context that a function of the topic names, if any."""

    def __init__(self, inner: SubjectNameStrategy, context: Callable[[str], str | None]) -> None:
        self._inner = inner
        self._context = context

    def __call__(self, topic: str, key: bool, record: str | None) -> str | None:
        subject = self._inner(topic, key, record)
        context = self._context(topic)
        if subject is None or context is None or subject.startswith(":."):
            return subject
        bare = context.strip(":").removeprefix(".")
        return f":.{bare}:{subject}" if bare else subject


_STRATEGIES: dict[str, SubjectNameStrategy] = {
    "topic": topic_name,
    "record": record_name,
    "topicrecord": topic_record_name,
}


#: The properties of ASSOCIATED.
_CLUSTER_ID = "subject.name.strategy.kafka.cluster.id"
_FALLBACK = "subject.name.strategy.fallback.type"


def strategy(
    choice: Any, registry: RegistryClient, config: Mapping[str, Any] | None = None
) -> SubjectNameStrategy:
    """Return the strategy of a configuration: a function or a name; topic names for None."""
    if choice is None:
        return topic_name
    if callable(choice):
        found: SubjectNameStrategy = choice
        return found
    short = str(choice).rpartition(".")[2].lower().removesuffix("namestrategy").replace("_", "")
    if short == "associated":
        return _associated(registry, config or {})
    if short not in _STRATEGIES:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            f"subject.name.strategy={choice}: use TOPIC, RECORD, TOPIC_RECORD, ASSOCIATED or a function",
        )
    return _STRATEGIES[short]


def _associated(registry: RegistryClient, config: Mapping[str, Any]) -> Associated:
    fallback = str(config.get(_FALLBACK) or "TOPIC")
    if fallback.upper() == "ASSOCIATED":
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"{_FALLBACK}={fallback}: use another strategy, or NONE")
    return Associated(
        registry,
        str(config.get(_CLUSTER_ID) or "-"),
        None if fallback.upper() == "NONE" else strategy(fallback, registry),
    )


def reference_name(name: str) -> str:
    """The default for references: the subject is the name."""
    return name


def qualified_reference_name(name: str) -> str:
    """The subject is the name with dots for slashes and without the suffix `.proto`."""
    return name.removesuffix(".proto").replace("/", ".")
