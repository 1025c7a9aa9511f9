"""`/config`, `/mode`, `/contexts`, `/compatibility`: settings, and the checks they govern."""

from __future__ import annotations

from moldau.registry.api.call import Call, Route
from moldau.registry.state import settings
from moldau.registry.state.compatibility import check
from moldau.registry.state.names import context_prefix
from moldau.registry.state.registry import Decision, Registry
from moldau.registry.state.subjects import parse_version


def _get_config(registry: Registry, call: Call) -> Decision:
    return settings.get_config(registry, call.setting_scope, default_to_global=call.flag("defaultToGlobal"))


def _put_config(registry: Registry, call: Call) -> Decision:
    return settings.update_config(registry, call.setting_scope, call.json())


def _delete_config(registry: Registry, call: Call) -> Decision:
    return settings.delete_config(registry, call.setting_scope)


def _get_mode(registry: Registry, call: Call) -> Decision:
    return settings.get_mode(registry, call.setting_scope, default_to_global=call.flag("defaultToGlobal"))


def _put_mode(registry: Registry, call: Call) -> Decision:
    return settings.update_mode(registry, call.setting_scope, call.json(), force=call.flag("force"))


def _delete_mode(registry: Registry, call: Call) -> Decision:
    return settings.delete_mode(registry, call.setting_scope, recursive=call.flag("recursive"))


def _contexts(registry: Registry, call: Call) -> Decision:
    return settings.list_contexts(registry, call.text("contextPrefix"), *call.page, access=call.access)


def _delete_context(registry: Registry, call: Call) -> Decision:
    return settings.delete_context(registry, context_prefix(call.parameters["context"]))


def _check(registry: Registry, call: Call) -> Decision:
    subject, version = call.subject(registry), call.parameters.get("version")
    normalize = call.flag("normalize") or bool(registry.config(subject).get("normalize"))
    return check(
        registry,
        call.schema(subject),
        None if version is None else parse_version(version),
        normalize=normalize,
        verbose=call.flag("verbose"),
    )


_CHECK = "/compatibility/subjects/{subject}/versions"

ROUTES = (
    Route("POST", _CHECK, "Check compatibility with all versions", _check, operation="SUBJECT_READ"),
    Route(
        "POST",
        _CHECK + "/{version}",
        "Check compatibility with a version",
        _check,
        operation="SUBJECT_READ",
    ),
    Route("GET", "/config", "Get the global config", _get_config, operation="GLOBAL_COMPATIBILITY_READ"),
    Route("PUT", "/config", "Change the global config", _put_config, True, "GLOBAL_COMPATIBILITY_WRITE"),
    Route(
        "DELETE", "/config", "Remove the global config", _delete_config, True, "GLOBAL_COMPATIBILITY_WRITE"
    ),
    Route(
        "GET",
        "/config/{subject}",
        "Get the config of a subject",
        _get_config,
        operation="SUBJECT_COMPATIBILITY_READ",
    ),
    Route(
        "PUT",
        "/config/{subject}",
        "Change the config of a subject",
        _put_config,
        True,
        "SUBJECT_COMPATIBILITY_WRITE",
    ),
    Route(
        "DELETE",
        "/config/{subject}",
        "Remove the config of a subject",
        _delete_config,
        True,
        "SUBJECT_COMPATIBILITY_WRITE",
    ),
    Route("GET", "/mode", "Get the global mode", _get_mode, operation="GLOBAL_MODE_READ"),
    Route("PUT", "/mode", "Change the global mode", _put_mode, True, "GLOBAL_MODE_WRITE"),
    Route("DELETE", "/mode", "Remove the global mode", _delete_mode, True, "GLOBAL_MODE_WRITE"),
    Route("GET", "/mode/{subject}", "Get the mode of a subject", _get_mode, operation="SUBJECT_MODE_READ"),
    Route("PUT", "/mode/{subject}", "Change the mode of a subject", _put_mode, True, "SUBJECT_MODE_WRITE"),
    Route(
        "DELETE", "/mode/{subject}", "Remove the mode of a subject", _delete_mode, True, "SUBJECT_MODE_WRITE"
    ),
    Route("GET", "/contexts", "List contexts", _contexts, operation="GLOBAL_READ"),
    Route(
        "DELETE",
        "/contexts/{context}",
        "Delete an empty context",
        _delete_context,
        True,
        "GLOBAL_COMPATIBILITY_WRITE",
    ),
)
