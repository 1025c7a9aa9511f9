"""SQL over topics: statements, and their rows as they arrive."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

from starlette.responses import JSONResponse, Response

from moldau.console.sql import Run, SqlRuns, check_statements, without_literals
from moldau.console.web.call import Call, CopyAs, Page, Refused, not_found
from moldau.console.web.commands import curl, sql_script, start_command, tool
from moldau.console.web.forms import InvalidField
from moldau.console.web.streams import COMMENT, event, stream

_MAX_LENGTH: Final = 100_000
_EXAMPLE: Final = "SHOW TOPICS;"


async def sql(call: Call) -> Page:
    await call.snapshot()
    enabled = call.services.sql is not None
    data = {
        "configured": enabled,
        "masked": bool(call.settings.masked),
        "topics": sorted(call.view.snapshot.topics)[:500],
    }
    copy = CopyAs(
        tool(call, "moldau", "sql", "-e", _EXAMPLE),
        curl(call, call.url("sql"), statements=_EXAMPLE) if enabled else curl(call),
        sql_script(call, _EXAMPLE),
    )
    return Page("sql", "SQL", data, {"start": start_command(call, "--sql")}, copy)


async def begin(call: Call) -> Response:
    """Take statements, and return the id under which their results can be read once."""
    runs = _runs(call)
    if call.settings.masked:
        raise Refused(
            403, "SQL is not possible while fields are masked: it would show them (masking.fields)."
        )
    form = await call.form()
    # The audit log has what was run, without what may be records or secrets.
    call.fields = {"statements": without_literals(form.get("statements", ""))}
    statements = form.text("statements", "SQL")
    if len(statements) > _MAX_LENGTH:
        raise InvalidField(f"SQL is longer than {_MAX_LENGTH} characters.")
    check_statements(statements)
    run = Run(statements, call.view.settings, call.services.registry_url)
    return JSONResponse({"run": runs.add(run)}, 201)


async def results(call: Call) -> Response:
    runs = _runs(call)
    run = runs.take(call.path("run"))
    if run is None:
        raise not_found("This run")
    return stream(_events(runs, run))


async def _events(runs: SqlRuns, run: Run) -> AsyncIterator[str]:
    try:
        async for output in runs.results(run):
            yield COMMENT if output.kind == "waiting" else event(output.kind, output.value)
    except Refused as refused:
        yield event("message", refused.message)
    yield event("closed", {})


def _runs(call: Call) -> SqlRuns:
    if call.services.sql is None:
        raise Refused(404, "SQL is not enabled: --sql.")
    return call.services.sql
