"""Which permissions a request needs: the operation of its route, on every subject that it may concern."""

from __future__ import annotations

from moldau.registry.api.call import Call, Route, integer
from moldau.registry.authorization import Operation
from moldau.registry.state.names import GLOBAL_CONTEXT, context_of, is_top_level, normalize, parse_name
from moldau.registry.state.registry import Decision, Registry


def authorize(route: Route, call: Call, registry: Registry) -> None:
    """Raise an `ApiError` 403 if the principal may not send the request."""
    if not route.operation or _is_own_schema(call, registry):
        return
    operation = _operation(route, call)
    for subject in call.subjects(registry):
        call.access.require(operation, subject)


def authorize_reply(route: Route, call: Call, decision: Decision) -> None:
    """Raise an `ApiError` 403 if a schema was found under a subject that the principal may not read.

    A look-up of a bare subject may find the schema in any context.
    """
    reply = decision.reply
    if route.operation == Operation.SUBJECT_READ and isinstance(reply, dict) and "subject" in reply:
        call.access.require(Operation.SUBJECT_READ, reply["subject"])


def _operation(route: Route, call: Call) -> Operation:
    """Return the operation of a route; that of the registry if a setting of the top level is named."""
    scope = call.setting_scope
    is_setting = route.operation.startswith(("SUBJECT_COMPATIBILITY_", "SUBJECT_MODE_"))
    if is_setting and (is_top_level(scope) or parse_name(scope or "") == (GLOBAL_CONTEXT, "")):
        return Operation(route.operation.replace("SUBJECT_", "GLOBAL_"))
    return Operation(route.operation)


def _is_own_schema(call: Call, registry: Registry) -> bool:
    """Return whether a schema is requested by its id together with a subject that has it.

    Deserializers send such requests. The permission to read the subject is enough; without the subject,
    reading any id needs GLOBAL_READ.
    """
    schema_id, subject = call.parameters.get("id"), call.text("subject")
    if schema_id is None or not subject or call.subject_filter is None:
        return False
    name = normalize(call.subject_filter)
    if registry.store.use_of(context_of(name), integer(schema_id), name) is None:
        return False
    return call.access.may_read(name)
