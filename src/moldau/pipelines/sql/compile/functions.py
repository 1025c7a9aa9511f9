"""Rewrites calls of ksqlDB functions (`function_tables`) to Spark functions."""

from __future__ import annotations

from functools import cache

import sqlglot
from sqlglot import exp

from moldau.pipelines.sql.compile.function_tables import AGGREGATES, SCALARS, SPARK_AGGREGATES, UNSUPPORTED
from moldau.pipelines.sql.errors import SqlError
from moldau.pipelines.sql.parse.dialect import Ksql

_UNITS = ("MILLISECOND", "SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "QUARTER", "YEAR")
#: Expressions that need no parentheses.
_SIMPLE = (exp.Column, exp.Literal, exp.Anonymous, exp.Var, exp.Lambda, exp.Identifier, exp.Boolean)
_UNITS_MS = {"MILLISECOND": 1, "SECOND": 1_000, "MINUTE": 60_000, "HOUR": 3_600_000}


def name_of(node: exp.Expression) -> str:
    """Return the name of a called function in upper case; "" if the node is not a call."""
    return str(node.this).upper() if isinstance(node, exp.Anonymous) else ""


def is_aggregate(node: exp.Expression) -> bool:
    return name_of(node) in AGGREGATES or name_of(node) in SPARK_AGGREGATES


def rewritten(root: exp.Expression, order: exp.Expression | None = None) -> exp.Expression:
    """Return a copy of an expression with Spark's functions and operators."""
    holder = exp.Paren(this=root.copy())
    for node in reversed(list(holder.this.find_all(exp.Anonymous, exp.Bracket))):
        if isinstance(node, exp.Bracket):
            node.replace(exp.Anonymous(this="try_element_at", expressions=[node.this, *node.expressions]))
        else:
            _rewrite_call(node, order)
    result: exp.Expression = holder.this
    return result


def _rewrite_call(node: exp.Anonymous, order: exp.Expression | None) -> None:
    name, arguments = name_of(node), list(node.expressions)
    if name in ("STRUCT", "MAP") and any(isinstance(given, exp.PropertyEQ) for given in arguments):
        node.replace(_constructor(name, arguments))
        return
    if name in UNSUPPORTED:
        raise SqlError(f"Function {name} is not supported", hint=UNSUPPORTED[name], word=name)
    if name in ("LATEST_BY_OFFSET", "EARLIEST_BY_OFFSET") and isinstance(arguments[-1], exp.Boolean):
        with_nulls = arguments.pop().this is False
        if with_nulls and len(arguments) == 1:
            function = "max_by" if name.startswith("LATEST") else "min_by"
            node.replace(_filled(f"{function}(_1, _order)", arguments, order))
            return
    if name == "FILTER" and isinstance(arguments[-1], exp.Lambda) and len(arguments[-1].expressions) == 2:
        node.replace(exp.Anonymous(this="map_filter", expressions=arguments))
        return
    if name in ("TIMEADD", "TIMESUB") and arguments:
        arguments[0] = exp.Literal.number(_UNITS_MS.get(_unit(arguments[0]).name, 1))
    if name in ("TIMESTAMPADD", "TIMESTAMPSUB", "DATEADD", "DATESUB") and arguments:
        arguments[0] = _unit(arguments[0])
        node.set("expressions", arguments)
    if name == "CONCAT" and not any(isinstance(given, exp.Array) for given in arguments):
        # In ksqlDB null is an empty string; in Spark it would make the result null.
        node.replace(exp.Anonymous(this="concat_ws", expressions=[exp.Literal.string(""), *arguments]))
        return
    if name == "FIELD":
        known = exp.Anonymous(this="array", expressions=arguments[1:])
        node.replace(exp.Anonymous(this="array_position", expressions=[known, arguments[0]]))
        return
    for template in (*SCALARS.get(name, ()), *AGGREGATES.get(name, ())):
        if _arity(template) == len(arguments):
            node.replace(_filled(template, arguments, order))
            return


def _constructor(name: str, arguments: list[exp.Expression]) -> exp.Expression:
    """Rewrite STRUCT(a := 1) and MAP('a' := 1)."""
    flat: list[exp.Expression] = []
    for given in arguments:
        key, value = given.this, given.expression
        flat += [exp.Literal.string(key.name) if name == "STRUCT" else key, value]
    return exp.Anonymous(this="named_struct" if name == "STRUCT" else "map", expressions=flat)


def _unit(node: exp.Expression) -> exp.Expression:
    word = node.name.upper().removesuffix("S")
    return exp.Var(this=word) if word in _UNITS else node


@cache
def _parsed(template: str) -> exp.Expression:
    parsed = sqlglot.parse_one(template, read=Ksql)
    if not isinstance(parsed, exp.Expression):
        raise TypeError(template)
    return parsed


@cache
def _arity(template: str) -> int:
    names = {column.name for column in _parsed(template).find_all(exp.Column)}
    return max((int(name[1:]) for name in names if name[1:].isdigit()), default=0)


def _filled(template: str, arguments: list[exp.Expression], order: exp.Expression | None) -> exp.Expression:
    holder = exp.Paren(this=_parsed(template).copy())
    for column in list(holder.find_all(exp.Column)):
        if column.name == "_order":
            column.replace(order.copy() if order is not None else exp.column("ROWOFFSET"))
        elif column.name[1:].isdigit():
            given = arguments[int(column.name[1:]) - 1].copy()
            simple = isinstance(given, _SIMPLE)
            column.replace(given if simple or column.parent is holder else exp.Paren(this=given))
    result: exp.Expression = holder.this
    return result
