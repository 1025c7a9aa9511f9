"""Executes DROP, TERMINATE, PAUSE and RESUME."""

from __future__ import annotations

from dataclasses import replace

from moldau.client.admin.client import checked
from moldau.pipelines.sql.catalog.catalog import PersistentQuery
from moldau.pipelines.sql.errors import SqlError
from moldau.pipelines.sql.parse.statements import Drop, Named, Pause, Terminate
from moldau.pipelines.sql.results import Message, Result
from moldau.pipelines.sql.run.context import Context
from moldau.pipelines.sql.run.streaming import late_topic


def drop(context: Context, statement: Drop) -> Result:
    if statement.if_exists and context.catalog.get(statement.name.name) is None:
        return Message(f"{statement.name.name} does not exist.")
    source = context.catalog.find(statement.name)
    if source.kind != statement.kind:
        raise SqlError(
            f"{source.name} is a {source.kind.lower()}",
            statement.name.place,
            f"Write DROP {source.kind} {source.name}",
        )
    readers = context.catalog.readers(source.name)
    others = [query for query in context.catalog.writers(source.name) if query.id != source.query]
    if readers or others:
        ids = ", ".join(query.id for query in (*readers, *others))
        raise SqlError(
            f"{source.name} is used by {ids}",
            statement.name.place,
            f"Run TERMINATE {(readers + others)[0].id} first.",
        )
    end_queries(context, context.catalog.writers(source.name))
    context.store.remove(source)
    if statement.delete_topic:
        late = late_topic(context.store.topic, source.name)
        topics = [source.topic, *([late] if context.partitions(late) is not None else [])]
        checked(context.admin.delete_topics(topics))
    return Message(f"Dropped {source.kind.lower()} {source.name}.")


def terminate(context: Context, statement: Terminate) -> Result:
    queries = _named(context, statement.query)
    end_queries(context, queries)
    return Message(f"Terminated: {_ids(queries)}.")


def pause(context: Context, statement: Pause) -> Result:
    """Pause or resume queries. A paused query keeps its state, and continues from there when it is
    resumed."""
    queries = [query for query in _named(context, statement.query) if query.paused == statement.resume]
    for query in queries:
        properties = {**query.properties, "paused": str(not statement.resume).lower()}
        context.store.put(replace(query, properties=properties))
    context.queries.reconcile(context.catalog)
    return Message(f"{'Resumed' if statement.resume else 'Paused'}: {_ids(queries)}.")


def _named(context: Context, named: Named | None) -> list[PersistentQuery]:
    return list(context.catalog.queries()) if named is None else [context.catalog.find_query(named)]


def _ids(queries: list[PersistentQuery]) -> str:
    return ", ".join(query.id for query in queries) or "no queries"


def end_queries(context: Context, queries: list[PersistentQuery]) -> None:
    for query in queries:
        context.store.remove(query)
        context.queries.stop(query.id, forget=query)
