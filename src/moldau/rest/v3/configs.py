"""Configs of topics, of brokers, and the dynamic default of all brokers ("cluster configs")."""

from __future__ import annotations

from typing import Any, NamedTuple

from moldau.base.errors import KafkaError
from moldau.client.admin.client import checked
from moldau.client.admin.configs import AlterConfig, AlterOperation, ConfigEntry, ConfigResource, ResourceType
from moldau.config.definition import ConfigSource
from moldau.config.topic import TOPIC_CONFIGS
from moldau.http.errors import ApiError
from moldau.rest.errors import bad_request, not_found, of_kafka
from moldau.rest.request import NO_CONTENT, Request, Response, json_response
from moldau.rest.v3.clusters import found_broker
from moldau.rest.v3.resources import checked_cluster, collection, config_text, json_object, resource, url


class _Subject(NamedTuple):
    """What has configs: its name in Kafka and in the API."""

    resource: ConfigResource
    kind: str
    path: tuple[object, ...]
    crn: tuple[tuple[str, object], ...]
    fields: dict[str, Any]
    #: In messages.
    label: str


def _topic(cluster: str, name: str) -> _Subject:
    return _Subject(
        ConfigResource(ResourceType.TOPIC, name),
        "KafkaTopicConfig",
        (cluster, "topics", name, "configs"),
        (("kafka", cluster), ("topic", name)),
        {"topic_name": name},
        f"TOPIC {name}",
    )


def _broker(cluster: str, id: int) -> _Subject:
    return _Subject(
        ConfigResource(ResourceType.BROKER, str(id)),
        "KafkaBrokerConfig",
        (cluster, "brokers", id, "configs"),
        (("kafka", cluster), ("broker", id)),
        {"broker_id": id},
        f"BROKER {id}",
    )


def _cluster(cluster: str) -> _Subject:
    return _Subject(
        ConfigResource(ResourceType.BROKER, ""),
        "KafkaClusterConfig",
        (cluster, "broker-configs"),
        (("kafka", cluster),),
        {"config_type": "BROKER"},
        "BROKER ",
    )


async def _subject(request: Request) -> _Subject:
    """Return the subject that the path names."""
    cluster = await checked_cluster(request)
    if "topic_name" in request.params:
        return _topic(cluster, request.params["topic_name"])
    if "broker_id" in request.params:
        return _broker(cluster, (await found_broker(request)).id)
    return _cluster(cluster)


async def list_configs(request: Request) -> Response:
    subject = await _subject(request)
    data = [_config(request, subject, entry) for entry in await _entries(request, subject)]
    return json_response(collection(f"{subject.kind}List", url(request, *subject.path), data))


async def list_default_configs(request: Request) -> Response:
    """List the configs that the topic would have without its own."""
    subject = await _subject(request)
    data = []
    for entry in await _entries(request, subject):
        inherited = [each for each in entry.synonyms if each.source is not ConfigSource.DYNAMIC_TOPIC_CONFIG]
        value = inherited[0].value if inherited else _own_default(entry)
        path = [*subject.path[:-1], "default-configs", entry.name]
        data.append(
            resource(
                request,
                "KafkaTopicDefaultConfig",
                path,
                [*subject.crn, ("default-config", entry.name)],
                cluster_id=subject.path[0],
                **subject.fields,
                name=entry.name,
                value=value,
                is_read_only=entry.read_only,
                is_sensitive=entry.sensitive,
            )
        )
    self_url = url(request, *subject.path[:-1], "default-configs")
    return json_response(collection("KafkaTopicConfigList", self_url, data))


def _own_default(entry: ConfigEntry) -> str | None:
    """Return the default of a config that has no counterpart among those of brokers."""
    if entry.source is not ConfigSource.DYNAMIC_TOPIC_CONFIG:
        return entry.value
    known = TOPIC_CONFIGS.get(entry.name)
    return None if known is None else known.default_text


async def list_all_topic_configs(request: Request) -> Response:
    cluster = await checked_cluster(request)
    listings = await request.clients.admin.list_topics()
    names = sorted(name for name, listing in listings.items() if not listing.internal)
    return await _list_all(
        request, [_topic(cluster, name) for name in names], (cluster, "topics", "-", "configs")
    )


async def list_all_broker_configs(request: Request) -> Response:
    cluster = await checked_cluster(request)
    nodes = sorted(node.id for node in (await request.clients.admin.describe_cluster()).nodes)
    return await _list_all(
        request, [_broker(cluster, id) for id in nodes], (cluster, "brokers", "-", "configs")
    )


async def _list_all(request: Request, subjects: list[_Subject], path: tuple[object, ...]) -> Response:
    resources = [subject.resource for subject in subjects]
    found = checked(await request.clients.admin.describe_configs(resources, include_synonyms=True))
    data = [_config(request, subject, entry) for subject in subjects for entry in found[subject.resource]]
    kind = "KafkaTopicConfigList" if path[1] == "topics" else "KafkaBrokerConfigList"
    return json_response(collection(kind, url(request, *path), data))


async def get_config(request: Request) -> Response:
    subject = await _subject(request)
    for entry in await _entries(request, subject):
        if entry.name == request.params["name"]:
            return json_response(_config(request, subject, entry))
    raise not_found("HTTP 404 Not Found")


async def update_config(request: Request) -> Response:
    body = await json_object(request)
    subject, name = await _subject(request), request.params["name"]
    await _check_known(request, subject, [name])
    value = body.get("value")
    change = AlterConfig(name, AlterOperation.SET, "" if value is None else config_text(value))
    await _alter(request, subject, [change])
    return NO_CONTENT


async def reset_config(request: Request) -> Response:
    subject, name = await _subject(request), request.params["name"]
    await _check_known(request, subject, [name])
    await _alter(request, subject, [AlterConfig(name, AlterOperation.DELETE)])
    return NO_CONTENT


async def alter_configs(request: Request) -> Response:
    body = await json_object(request)
    changes = _changes(body.get("data"))
    subject = await _subject(request)
    await _check_known(request, subject, [change.name for change in changes])
    await _alter(request, subject, changes, validate_only=body.get("validate_only") is True)
    return NO_CONTENT


async def alter_all_topic_configs(request: Request) -> Response:
    """Alter the configs of several topics; 404 if one does not exist, 207 with the failures of Kafka."""
    body = await json_object(request)
    await checked_cluster(request)
    entries = body.get("data")
    if not isinstance(entries, list):
        raise bad_request("data must be a list of topics with configs.")
    changes: dict[ConfigResource, list[AlterConfig]] = {}
    for each in entries:
        if not isinstance(each, dict) or not isinstance(each.get("topic_name"), str):
            raise bad_request("An entry of data must have topic_name and configs.")
        changed = changes.setdefault(ConfigResource(ResourceType.TOPIC, each["topic_name"]), [])
        changed += _changes(each.get("configs"))
    found = checked(await request.clients.admin.describe_configs(list(changes)))
    for topic, wanted in changes.items():
        known = {entry.name for entry in found[topic]}
        for change in wanted:
            if change.name not in known:
                raise _unknown(request, change.name, f"topic {topic.name}")
    results = await request.clients.admin.incremental_alter_configs(
        changes, validate_only=body.get("validate_only") is True
    )
    failures = []
    for each, error in results.items():
        if isinstance(error, KafkaError):
            answer = of_kafka(error)
            failures.append(
                {"topic_name": each.name, "error_code": answer.error_code, "message": answer.message}
            )
    return json_response({"failures": failures}, 207) if failures else NO_CONTENT


async def _entries(request: Request, subject: _Subject) -> list[ConfigEntry]:
    admin = request.clients.admin
    found = await admin.describe_configs([subject.resource], include_synonyms=True)
    return checked(found)[subject.resource]


async def _check_known(request: Request, subject: _Subject, names: list[str]) -> None:
    """Raise 404 for a config that does not exist; the dynamic default may have any config of brokers."""
    if subject.kind == "KafkaClusterConfig":
        return
    known = {entry.name for entry in await _entries(request, subject)}
    for name in names:
        if name not in known:
            raise _unknown(request, name, subject.label)


def _unknown(request: Request, name: str, label: str) -> ApiError:
    cluster = request.params["cluster_id"]
    return not_found(f"Config {name} cannot be found for {label} in cluster {cluster}.")


async def _alter(
    request: Request, subject: _Subject, changes: list[AlterConfig], *, validate_only: bool = False
) -> None:
    admin = request.clients.admin
    checked(await admin.incremental_alter_configs({subject.resource: changes}, validate_only=validate_only))


def _changes(entries: Any) -> list[AlterConfig]:
    if not isinstance(entries, list):
        raise bad_request("data must be a list of changes.")
    changes = []
    for each in entries:
        if not isinstance(each, dict) or not isinstance(each.get("name"), str):
            raise bad_request("A change must have a name.")
        operation = str(each.get("operation") or "SET").upper()
        if operation not in ("SET", "DELETE"):
            raise bad_request(f"operation must be SET or DELETE, not {operation}.")
        value = each.get("value")
        if operation == "DELETE":
            changes.append(AlterConfig(each["name"], AlterOperation.DELETE))
        else:
            changes.append(
                AlterConfig(each["name"], AlterOperation.SET, "" if value is None else config_text(value))
            )
    return changes


def _config(request: Request, subject: _Subject, entry: ConfigEntry) -> dict[str, Any]:
    return resource(
        request,
        subject.kind,
        [*subject.path, entry.name],
        [*subject.crn, ("broker-config" if "config_type" in subject.fields else "config", entry.name)],
        cluster_id=subject.path[0],
        **subject.fields,
        name=entry.name,
        value=entry.value,
        is_default=entry.source is ConfigSource.DEFAULT_CONFIG,
        is_read_only=entry.read_only,
        is_sensitive=entry.sensitive,
        source=entry.source.name,
        synonyms=[
            {"name": each.name, "value": each.value, "source": each.source.name} for each in entry.synonyms
        ],
    )
