"""Client quotas: list, set, remove."""

from __future__ import annotations

import math
from typing import Any, Final

from moldau.client.admin.quotas import QuotaEntity
from moldau.console.web.call import Call, CopyAs, Done, Page
from moldau.console.web.commands import admin_script, curl, tool
from moldau.console.web.forms import Form, InvalidField

_KINDS: Final = ("user", "client-id", "ip")
_KEYS: Final = (
    "producer_byte_rate",
    "consumer_byte_rate",
    "request_percentage",
    "controller_mutation_rate",
    "connection_creation_rate",
)
#: Stands for the default entity in forms, as in Kafka's tools.
_DEFAULT: Final = "<default>"


async def quotas(call: Call) -> Page:
    found = await call.view.shared.get("quotas", lambda: call.admin.describe_client_quotas([], strict=False))
    rows: list[dict[str, Any]] = [
        {
            "entity": {kind: _DEFAULT if name is None else name for kind, name in entity},
            "key": key,
            "value": value,
        }
        for entity, values in found.items()
        for key, value in sorted(values.items())
    ]
    rows.sort(key=lambda row: (sorted(row["entity"].items()), row["key"]))
    copy = CopyAs(
        tool(call, "kafka-configs", "--describe", "--entity-type", "users", "--entity-type", "clients"),
        curl(call),
        admin_script(call, "print(admin.describe_client_quotas([], strict=False))"),
    )
    return Page("quotas", "Quotas", {"quotas": rows}, {"kinds": _KINDS, "keys": _KEYS}, copy)


async def save_quota(call: Call) -> Done:
    form = await call.form()
    entity, key = _entity(form), form.choice("key", "Quota", _KEYS)
    text = form.text("value", "Value")
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or value <= 0:
        raise InvalidField("Value must be a number above 0.")
    await _alter(call, entity, key, value)
    return Done(f"{key} of {_named(entity)} is saved.", call.url("quotas"), status=201)


async def delete_quota(call: Call) -> Done:
    form = await call.form()
    entity, key = _entity(form), form.choice("key", "Quota", _KEYS)
    await _alter(call, entity, key, None)
    return Done(f"{key} of {_named(entity)} is removed.", call.url("quotas"))


async def _alter(call: Call, entity: QuotaEntity, key: str, value: float | None) -> None:
    await call.admin.alter_client_quotas(entity, {key: value})
    call.view.shared.clear()


def _entity(form: Form) -> QuotaEntity:
    entity: list[tuple[str, str | None]] = []
    for kind in _KINDS:
        name = form.text(kind)
        if name:
            entity.append((kind, None if name == _DEFAULT else name))
    if not entity:
        raise InvalidField("Give a user, a client id or an IP address; <default> stands for all others.")
    return tuple(entity)


def _named(entity: QuotaEntity) -> str:
    return ", ".join(f"{kind} {name or _DEFAULT}" for kind, name in entity)
