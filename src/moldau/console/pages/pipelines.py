"""Pipelines and SQL: what runs, and how to configure it where nothing does."""

from __future__ import annotations

from moldau.console.web.call import Call, Page


async def pipelines(call: Call) -> Page:
    await call.snapshot()
    return Page("pipelines", "Pipelines", {"configured": False, "pipelines": []})


async def sql(call: Call) -> Page:
    await call.snapshot()
    return Page("sql", "SQL", {"configured": False})
