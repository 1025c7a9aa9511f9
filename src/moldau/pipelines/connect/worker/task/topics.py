"""Topics that a source connector's tasks create before they write (`topic.creation.*`).

Without `topic.creation.default.*` settings, or with `topic.creation.enable=false` of the worker, the brokers
create topics as they are configured to.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from moldau.base.errors import ErrorCode, KafkaError
from moldau.client.admin.client import AdminClient
from moldau.client.admin.topic_types import NewTopic
from moldau.pipelines.connect.data.errors import ConnectError, RetriableError
from moldau.pipelines.connect.worker.retries import may_pass

PREFIX: Final = "topic.creation."
DEFAULT_GROUP: Final = "default"
_OWN: Final = ("include", "exclude", "replication.factor", "partitions")


@dataclass(frozen=True, slots=True)
class TopicGroup:
    """Topics by regular expressions, and how they are created."""

    include: tuple[str, ...]
    exclude: tuple[str, ...]
    partitions: int
    replication_factor: int
    configs: Mapping[str, str]

    def matches(self, topic: str) -> bool:
        return any(re.fullmatch(each, topic) for each in self.include) and not any(
            re.fullmatch(each, topic) for each in self.exclude
        )


def topic_groups(config: Mapping[str, str]) -> list[TopicGroup]:
    """Return the groups of a connector in their order, the default one last; none if it has no default."""
    default = _settings(config, DEFAULT_GROUP)
    if "replication.factor" not in default and "partitions" not in default:
        return []
    names = [each.strip() for each in config.get(f"{PREFIX}groups", "").split(",") if each.strip()]
    groups = [_group({**default, "include": "", "exclude": "", **_settings(config, name)}) for name in names]
    return [*groups, _group({**default, "include": ".*", "exclude": ""})]


def _settings(config: Mapping[str, str], group: str) -> dict[str, str]:
    prefix = f"{PREFIX}{group}."
    return {name.removeprefix(prefix): value for name, value in config.items() if name.startswith(prefix)}


def _group(settings: Mapping[str, str]) -> TopicGroup:
    return TopicGroup(
        include=_patterns(settings["include"]),
        exclude=_patterns(settings["exclude"]),
        partitions=int(settings.get("partitions", "-1")),
        replication_factor=int(settings.get("replication.factor", "-1")),
        configs={name: value for name, value in settings.items() if name not in _OWN},
    )


def _patterns(text: str) -> tuple[str, ...]:
    return tuple(each.strip() for each in text.split(",") if each.strip())


class TopicCreation:
    """Creates topics of one task before their first record."""

    def __init__(self, groups: list[TopicGroup], client: Mapping[str, str]) -> None:
        self._groups = groups
        self._client = client
        self._known: set[str] = set()

    def ensure(self, topic: str) -> None:
        if topic in self._known:
            return
        group = next((each for each in self._groups if each.matches(topic)), None)
        if group is not None:
            self._create(topic, group)
        self._known.add(topic)

    def _create(self, topic: str, group: TopicGroup) -> None:
        wanted = NewTopic(
            topic,
            partitions=group.partitions,
            replication_factor=group.replication_factor,
            configs=dict(group.configs),
        )
        error = create_missing(self._client, wanted)
        if error is not None:
            kind = RetriableError if may_pass(error) else ConnectError
            raise kind(f"Task failed to create new topic {topic}: {error}") from error


def create_missing(client: Mapping[str, str], wanted: NewTopic) -> KafkaError | None:
    """Create a topic if it is missing; one that exists needs no permission. Return the error."""
    try:
        with AdminClient(dict(client)) as admin:
            if not isinstance(admin.describe_topics([wanted.name])[wanted.name], KafkaError):
                return None
            result = admin.create_topics([wanted])[wanted.name]
    except KafkaError as error:
        result = error
    if isinstance(result, KafkaError) and result.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
        return result
    return None
