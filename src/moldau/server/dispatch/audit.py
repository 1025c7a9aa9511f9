"""The audit log: administrative requests with their principal and outcome, in the logger `moldau.audit`.

What a client was denied is in `kafka.authorizer.logger`. A request is logged by the node that the client is
connected to, once, also if another node decides it. Names of resources are logged, values are not: configs
and credentials may be secret.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Iterator, Mapping
from functools import partial
from typing import Any, Final

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.printable import one_line
from moldau.protocol.api_keys import ApiKey
from moldau.protocol.apis import APIS
from moldau.protocol.schema import Message
from moldau.server.dispatch.context import Handler, HandlerResult, Pending, RequestContext

AUDIT_LOGGER: Final = "moldau.audit"
_audit = logging.getLogger(AUDIT_LOGGER)
#: Requests that change the cluster. Those between nodes are not among them.
ADMINISTRATIVE: Final = frozenset(
    {
        ApiKey.CREATE_TOPICS,
        ApiKey.DELETE_TOPICS,
        ApiKey.CREATE_PARTITIONS,
        ApiKey.DELETE_RECORDS,
        ApiKey.ALTER_CONFIGS,
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        ApiKey.CREATE_ACLS,
        ApiKey.DELETE_ACLS,
        ApiKey.ALTER_CLIENT_QUOTAS,
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        ApiKey.ALTER_REPLICA_LOG_DIRS,
        ApiKey.ELECT_LEADERS,
        ApiKey.DELETE_GROUPS,
        ApiKey.OFFSET_DELETE,
        ApiKey.ALTER_SHARE_GROUP_OFFSETS,
        ApiKey.DELETE_SHARE_GROUP_OFFSETS,
        ApiKey.UPDATE_FEATURES,
        ApiKey.UNREGISTER_BROKER,
        ApiKey.ADD_RAFT_VOTER,
        ApiKey.REMOVE_RAFT_VOTER,
        ApiKey.CREATE_DELEGATION_TOKEN,
        ApiKey.RENEW_DELEGATION_TOKEN,
        ApiKey.EXPIRE_DELEGATION_TOKEN,
    }
)
#: Fields that name a resource.
_NAMES: Final = frozenset(
    {"name", "topic", "resource_name", "group_id", "groups_names", "topic_names", "broker_id", "feature"}
    | {"principal", "voter_id", "owner_principal_name", "entity_name"}
)
_MAX_NAMES: Final = 20
_MAX_LINE: Final = 4000


def audited(handlers: Mapping[int, Handler]) -> dict[int, Handler]:
    """Return the handlers of a listener, those of administrative requests with an audit log."""
    return {
        key: partial(_audited, handler, key) if key in ADMINISTRATIVE else handler
        for key, handler in handlers.items()
    }


def _audited(handler: Handler, key: int, context: RequestContext, request: Any) -> HandlerResult:
    if context.forwarded or not _audit.isEnabledFor(logging.INFO):
        return handler(context, request)
    # Before the handler, which may change the request.
    resources = _names(request)
    try:
        result = handler(context, request)
    except KafkaError as error:
        _log(key, context, resources, error.code.name)
        raise
    if result is None or isinstance(result, Message):
        _log(key, context, resources, _outcome(result))
        return result
    if isinstance(result, Pending):
        return result._replace(response=_later(result.response, key, context, resources))
    return _later(result, key, context, resources)


async def _later(
    result: Awaitable[Message | None], key: int, context: RequestContext, resources: list[str]
) -> Message | None:
    try:
        response = await result
    except KafkaError as error:
        _log(key, context, resources, error.code.name)
        raise
    _log(key, context, resources, _outcome(response))
    return response


def _log(key: int, context: RequestContext, resources: list[str], outcome: str) -> None:
    shown = resources[:_MAX_NAMES]
    if len(resources) > _MAX_NAMES:
        shown.append(f"and {len(resources) - _MAX_NAMES} more")
    fields = {
        "api": APIS[ApiKey(key)].name,
        "principal": str(context.principal),
        "client": context.client_host,
        "client_id": context.client_id or "",
        "listener": context.listener.name,
        "resources": shown,
        "outcome": outcome,
    }
    text = one_line(
        f"{fields['api']} of {', '.join(shown) or 'nothing'} by {context.principal} "
        f"from {context.client_host} (client {context.client_id}, listener {context.listener.name}): "
        f"{outcome}",
        _MAX_LINE,
    )
    _audit.info("%s", text, extra={"event": "audit", "fields": fields})


def _names(message: Any) -> list[str]:
    return list(dict.fromkeys(_walk_names(message)))


def _walk_names(message: Any) -> Iterator[str]:
    for field in message.FIELDS:
        value = getattr(message, field.name)
        for each in value if isinstance(value, list) else [value]:
            if hasattr(each, "FIELDS"):
                # The configs of a resource have names, too.
                if field.name not in ("configs", "ops"):
                    yield from _walk_names(each)
            elif field.name in _NAMES and isinstance(each, str | int) and each not in ("", None):
                yield str(each)


def _outcome(response: Message | None) -> str:
    """Return the errors of a response; NONE if there are none."""
    codes = [] if response is None else sorted(set(_walk_errors(response)) - {0})
    return ", ".join(ErrorCode.of(code).name for code in codes) or ErrorCode.NONE.name


def _walk_errors(message: Any) -> Iterator[int]:
    for field in message.FIELDS:
        value = getattr(message, field.name)
        if field.name == "error_code":
            yield int(value)
        elif isinstance(value, list):
            for each in value:
                if hasattr(each, "FIELDS"):
                    yield from _walk_errors(each)
