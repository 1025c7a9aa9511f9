"""A page with all endpoints, written out by the proxy: it loads nothing, and needs no script."""

from __future__ import annotations

import json
from collections.abc import Iterable
from html import escape
from typing import Final

from moldau.rest.openapi.schemas import SCHEMAS, Schema
from moldau.rest.routing import Route

_STYLE: Final = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 62rem; padding: 0 1rem }
summary { cursor: pointer; font-family: ui-monospace, monospace; padding: .2rem 0 }
summary span { color: #666; font-family: system-ui, sans-serif }
b { display: inline-block; width: 4.5rem }
table { border-collapse: collapse } td { padding: .1rem 1rem .1rem 0; vertical-align: top }
pre { background: #8881; padding: .6rem; overflow: auto }
details > div { margin: 0 0 1rem 1.2rem }
"""
_MAX_DEPTH: Final = 4


def page(routes: Iterable[Route], version: str) -> str:
    found = list(routes)
    sections = "".join(
        f"<h2>{name}</h2>" + "".join(_endpoint(route) for route in found if route.version == name)
        for name in ("v3", "v2")
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Moldau REST proxy</title>'
        f"<style>{_STYLE}</style></head><body><h1>Moldau REST proxy {escape(version)}</h1>"
        '<p>The description for tools: <a href="/openapi.json">openapi.json</a>.</p>'
        f"{sections}</body></html>"
    )


def _endpoint(route: Route) -> str:
    rows = "".join(
        f"<tr><td><code>{escape(each.name)}</code></td><td>{each.type}</td>"
        f"<td>{escape(each.description)}</td></tr>"
        for each in route.query
    )
    parts = [
        f"<table>{rows}</table>" if rows else "",
        _media("Content-Type", route.consumes),
        _example("Body", route.body),
        _media("Accept", route.produces if route.status != 204 else ()),
        _example(f"Response {route.status}", route.response),
    ]
    return (
        f"<details><summary><b>{route.method}</b> {escape(route.path)} "
        f"<span>{escape(route.summary)}</span></summary><div>{''.join(parts)}</div></details>"
    )


def _media(name: str, kinds: tuple[str, ...]) -> str:
    listed = ", ".join(f"<code>{escape(each)}</code>" for each in kinds)
    return f"<p>{name}: {listed}</p>" if listed else ""


def _example(title: str, name: str) -> str:
    if not name:
        return ""
    schema = SCHEMAS[name]
    text = f" {escape(schema['description'])}" if "description" in schema else ""
    shown = json.dumps(_shape(schema, 0), indent=1, ensure_ascii=False)
    return f"<p>{title}.{text}</p><pre>{escape(shown)}</pre>"


def _shape(schema: Schema, depth: int) -> object:
    """Return an example of the form of a value: its fields, with their types."""
    if "allOf" in schema:
        schema = schema["allOf"][0]
    if "$ref" in schema:
        schema = SCHEMAS[schema["$ref"].rpartition("/")[2]]
    if "enum" in schema:
        return " | ".join(schema["enum"])
    kind = schema.get("type", "any")
    if depth >= _MAX_DEPTH or (kind == "object" and "properties" not in schema):
        return kind
    if kind == "array":
        return [_shape(schema["items"], depth + 1)]
    if kind == "object":
        return {name: _shape(each, depth + 1) for name, each in schema["properties"].items()}
    return schema.get("format", kind)
