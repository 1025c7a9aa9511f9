"""The audit log: administrative requests and failed logins, in the logger `moldau.audit`.

What a client was denied is in `kafka.authorizer.logger`. A request is logged by the node that the client is
connected to, once, also if another node decides it, and also if the client does not wait for the response.
Names of resources are logged, values are not: configs and credentials may be secret.

The same line is logged once a minute, with the number of times it was left out: a consumer that is no member
commits like an administrator who sets offsets, and a client with a wrong password tries again and again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Iterator, Mapping
from functools import partial
from typing import Any, Final

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.json_log import event
from moldau.base.log_throttle import Repeats
from moldau.base.printable import one_line
from moldau.protocol.api_keys import ApiKey
from moldau.protocol.apis import APIS
from moldau.protocol.schema import Message
from moldau.server.dispatch.administrators import BY_ADMINISTRATOR
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
#: The outcome of a request whose connection was closed before the response: it may have taken effect.
DISCONNECTED: Final = "CONNECTION_CLOSED"
_UNEXPECTED: Final = ErrorCode.UNKNOWN_SERVER_ERROR.name


_repeats: Final = Repeats()


def audited(handlers: Mapping[int, Handler]) -> dict[int, Handler]:
    """Return the handlers of a listener, those of administrative requests with an audit log."""
    return {key: _with_audit(handler, key) for key, handler in handlers.items()}


def _with_audit(handler: Handler, key: int) -> Handler:
    if key in ADMINISTRATIVE:
        return partial(_audited, handler, key)
    by_administrator = BY_ADMINISTRATOR.get(key)
    if by_administrator is None:
        return handler

    def audited_if(context: RequestContext, request: Any) -> HandlerResult:
        if by_administrator(context, request):
            return _audited(handler, key, context, request)
        return handler(context, request)

    return audited_if


def _audited(handler: Handler, key: int, context: RequestContext, request: Any) -> HandlerResult:
    if context.forwarded or not _audit.isEnabledFor(logging.INFO):
        return handler(context, request)
    # Before the handler, which may change the request.
    resources = _names(request)
    outcome: str | None = _UNEXPECTED
    try:
        result = handler(context, request)
        outcome = None
    except KafkaError as error:
        outcome = error.code.name
        raise
    finally:
        if outcome is not None:
            _log(key, context, resources, outcome)
    if result is None or isinstance(result, Message):
        _log(key, context, resources, _outcome(result))
        return result
    if isinstance(result, Pending):
        return result._replace(response=_later(result.response, key, context, resources))
    return _later(result, key, context, resources)


async def _later(
    result: Awaitable[Message | None], key: int, context: RequestContext, resources: list[str]
) -> Message | None:
    outcome = _UNEXPECTED
    try:
        response = await result
        outcome = _outcome(response)
        return response
    except KafkaError as error:
        outcome = error.code.name
        raise
    except asyncio.CancelledError:
        outcome = DISCONNECTED
        raise
    finally:
        _log(key, context, resources, outcome)


def login_failed(listener: str, host: str, mechanism: str, reason: str) -> None:
    """Log a failed SASL login. The name of the user is not known: the client has not proved it."""
    if not _audit.isEnabledFor(logging.INFO):
        return
    fields = {"mechanism": mechanism, "client": host, "listener": listener, "reason": one_line(reason)}
    chosen = mechanism or "no mechanism"
    _write("login.failed", f"Failed login with {chosen} from {host} (listener {listener}): {reason}", fields)


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
    _write(
        "audit",
        f"{fields['api']} of {', '.join(shown) or 'nothing'} by {context.principal} "
        f"from {context.client_host} (client {context.client_id}, listener {context.listener.name}): "
        f"{outcome}",
        fields,
        repeats=key == ApiKey.OFFSET_COMMIT,
    )


def _write(name: str, line: str, fields: Mapping[str, Any], *, repeats: bool = True) -> None:
    """Log a line, unless it `repeats` one of the last minute."""
    text = one_line(line, _MAX_LINE)
    left_out = _repeats.left_out(text) if repeats else 0
    if left_out is None:
        return
    if left_out:
        text = f"{text} ({left_out} more since the last line)"
        fields = {**fields, "repeated": left_out}
    _audit.info("%s", text, extra=event(name, **fields))


def _names(message: Any) -> list[str]:
    return list(dict.fromkeys(_walk_names(message)))


def _walk_names(message: Any) -> Iterator[str]:
    for field in message.FIELDS:
        value = getattr(message, field.name)
        for each in value if isinstance(value, list) else [value]:
            if hasattr(each, "FIELDS"):
                # The configs of a resource also have names.
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
