"""Read-your-writes: a response is sent when this node has applied the change that another node decided.

Kafka responds earlier. Here a client may use a created topic or user immediately, on the broker that
responded.
Requests that are not listed here change nothing that clients use immediately.
"""

from __future__ import annotations

from collections.abc import Callable

from moldau.base.errors import ErrorCode
from moldau.metadata.image import MetadataImage
from moldau.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
)
from moldau.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse
from moldau.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from moldau.protocol.messages.delete_topics import DeleteTopicsResponse
from moldau.protocol.schema import Message

ImageCondition = Callable[[MetadataImage], bool]


def visible(request: Message, response: Message) -> ImageCondition | None:
    """Return whether an image shows the change; None if there is nothing to wait for."""
    if isinstance(response, DeleteTopicsResponse):
        return _deleted(response)
    if isinstance(request, CreateTopicsRequest) and isinstance(response, CreateTopicsResponse):
        return None if request.validate_only else _created(response)
    if isinstance(request, CreatePartitionsRequest) and isinstance(response, CreatePartitionsResponse):
        return None if request.validate_only else _partitions_created(request, response)
    if isinstance(request, AlterUserScramCredentialsRequest) and isinstance(
        response, AlterUserScramCredentialsResponse
    ):
        return _users_altered(request, response)
    return None


def _created(response: CreateTopicsResponse) -> ImageCondition:
    names = [each.name for each in response.topics if each.error_code == ErrorCode.NONE]
    return lambda image: all(name in image.topics.by_name for name in names)


def _deleted(response: DeleteTopicsResponse) -> ImageCondition:
    deleted = [each for each in response.responses if each.error_code == ErrorCode.NONE]
    ids = [each.topic_id for each in deleted]
    return lambda image: not any(topic_id in image.topics.by_id for topic_id in ids)


def _partitions_created(
    request: CreatePartitionsRequest, response: CreatePartitionsResponse
) -> ImageCondition:
    done = {each.name for each in response.results if each.error_code == ErrorCode.NONE}
    wanted = {each.name: each.count for each in request.topics if each.name in done}

    def shows(image: MetadataImage) -> bool:
        topics = image.topics.by_name
        return all(name not in topics or len(topics[name].partitions) >= wanted[name] for name in wanted)

    return shows


def _users_altered(
    request: AlterUserScramCredentialsRequest, response: AlterUserScramCredentialsResponse
) -> ImageCondition:
    done = {each.user for each in response.results if each.error_code == ErrorCode.NONE}
    deleted = [(each.mechanism, each.name) for each in request.deletions if each.name in done]
    set_to = {
        (each.mechanism, each.name): (each.salt, each.iterations)
        for each in request.upsertions
        if each.name in done
    }

    def shows(image: MetadataImage) -> bool:
        stored = {key: image.scram.get(key) for key in set_to}
        return not any(key in image.scram for key in deleted) and all(
            each is not None and (each.salt, each.iterations) == set_to[key] for key, each in stored.items()
        )

    return shows
