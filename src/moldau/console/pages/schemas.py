"""Schemas of the registry: subjects, versions, registering, compatibility, deleting."""

from __future__ import annotations

import asyncio
import json
import shlex
from typing import Any, Final
from urllib.parse import quote

from moldau.client.registry import AsyncRegistryClient, Schema
from moldau.client.registry.types import RegistryError
from moldau.console.web.call import Call, CopyAs, Done, Page, Refused, not_found, paged
from moldau.console.web.commands import curl, registry_script, start_command
from moldau.console.web.forms import checked_number, confirm_name

PAGE_SIZE: Final = 50
#: Where a registry usually is, for a console without one.
_USUAL_URL: Final = "http://localhost:8081"
_TYPES: Final = ("AVRO", "JSON", "PROTOBUF")
LEVELS: Final = (
    "BACKWARD",
    "BACKWARD_TRANSITIVE",
    "FORWARD",
    "FORWARD_TRANSITIVE",
    "FULL",
    "FULL_TRANSITIVE",
    "NONE",
)


async def schemas(call: Call) -> Page:
    await call.snapshot()
    registry = call.services.registry
    if registry is None:
        extra = {**_empty(), "start": start_command(call, "--registry", _USUAL_URL, "schema.registry.url")}
        data = {"configured": False, "subjects": [], "total": 0}
        return Page("schemas", "Schemas", data, extra, _copy(call, "/subjects", "registry.subjects()"))
    query = call.query("q").strip().lower()
    names = [each for each in sorted(await registry.subjects()) if query in each.lower()]
    number = checked_number(call.query("page", "1"), "Page", least=1, most=1_000_000)
    chosen, pages = paged(names, number, PAGE_SIZE)
    rows = await asyncio.gather(*(_subject(registry, name) for name in chosen))
    data = {"configured": True, "subjects": rows, "total": len(names)}
    extra = {"q": call.query("q"), "types": _TYPES, "page": min(number, pages), "pages": pages}
    copy = _copy(call, "/subjects", "registry.subjects()")
    return Page("schemas", "Schemas", data, extra, copy)


def _empty() -> dict[str, Any]:
    return {"q": "", "types": _TYPES, "page": 1, "pages": 1}


async def _subject(registry: AsyncRegistryClient, name: str) -> dict[str, Any]:
    try:
        latest = await registry.latest(name)
    except RegistryError as error:
        return {"subject": name, "version": None, "id": None, "type": None, "error": str(error)}
    return {
        "subject": name,
        "version": latest.version,
        "id": latest.id,
        "type": latest.schema.schema_type,
        "error": None,
    }


async def schema(call: Call) -> Page:
    await call.snapshot()
    registry, subject = _registry(call), call.path("subject")
    registry.clear_caches()
    versions = await registry.versions(subject)
    if not versions:
        raise not_found(f"Subject {subject}")
    wanted = call.query("version")
    number = checked_number(wanted, "Version", least=1, most=2**31 - 1) if wanted else versions[-1]
    found = await registry.version(subject, number)
    data = {
        "subject": subject,
        "versions": versions,
        "version": number,
        "id": found.id,
        "type": found.schema.schema_type,
        "schema": _pretty(found.schema),
        "references": [each._asdict() for each in found.schema.references],
        "compatibility": await _compatibility(registry, subject),
    }
    extra = {"types": _TYPES, "levels": LEVELS}
    path = f"/subjects/{quote(subject, safe='')}/versions/{number}"
    copy = _copy(call, path, f"registry.version({subject!r}, {number}).schema.text")
    return Page("schema", subject, data, extra, copy)


def _copy(call: Call, path: str, expression: str) -> CopyAs:
    """Kafka has no tool for schemas; the registry has a REST API."""
    url = call.services.registry_url or _USUAL_URL
    return CopyAs(shlex.join(["curl", url.rstrip("/") + path]), curl(call), registry_script(url, expression))


async def register(call: Call) -> Done:
    form = await call.form()
    registry, subject = _registry(call), form.text("subject", "Subject")
    kind = form.choice("type", "Type", _TYPES)
    wanted = Schema(form.text("schema", "Schema"), kind)
    registered = await registry.register(subject, wanted)
    registry.clear_caches()
    return Done(
        f"The schema is registered as {subject} with id {registered.id}.",
        call.url("schemas", subject),
        {"id": registered.id},
        201,
    )


async def check(call: Call) -> Done:
    """Test whether a schema is compatible with the latest version, without registering it."""
    form = await call.form()
    registry, subject = _registry(call), call.path("subject")
    kind = form.choice("type", "Type", _TYPES)
    result = await registry.test_compatibility(subject, Schema(form.text("schema", "Schema"), kind))
    if not result.is_compatible:
        raise Refused(409, f"The schema is not compatible. {'; '.join(result.messages)}".strip())
    return Done("The schema is compatible.")


async def set_compatibility(call: Call) -> Done:
    form = await call.form()
    registry, subject = _registry(call), call.path("subject")
    level = form.choice("level", "Compatibility", LEVELS)
    await registry.set_config(subject, {"compatibility": level})
    return Done(f"The compatibility of {subject} is {level}.", call.url("schemas", subject))


async def delete_subject(call: Call) -> Done:
    registry, subject = _registry(call), call.path("subject")
    confirm_name(await call.form(), "subject", subject)
    await registry.delete_subject(subject)
    return Done(f"Subject {subject} is deleted.", call.url("schemas"))


def _registry(call: Call) -> AsyncRegistryClient:
    if call.services.registry is None:
        raise Refused(404, "No schema registry is configured: --registry URL.")
    return call.services.registry


async def _compatibility(registry: AsyncRegistryClient, subject: str) -> str:
    try:
        found = await registry.config(subject)
    except RegistryError:
        return ""
    return str(found.get("compatibilityLevel") or found.get("compatibility") or "")


def _pretty(schema: Schema) -> str:
    if schema.schema_type == "PROTOBUF":
        return schema.text
    try:
        return json.dumps(json.loads(schema.text), indent=2, ensure_ascii=False)
    except ValueError:
        return schema.text
