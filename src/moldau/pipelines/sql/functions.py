"""Functions by ksqlDB's names. What is not in these tables is Spark's and goes to Spark as it is.

A template stands for a call with that many arguments, which are `_1`, `_2` and so on.
"""

from __future__ import annotations

from functools import cache

import sqlglot
from sqlglot import exp

from moldau.pipelines.sql.dialect import Ksql

_UNITS = ("MILLISECOND", "SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "QUARTER", "YEAR")

#: ksqlDB's name -> templates by the number of arguments.
SCALARS: dict[str, tuple[str, ...]] = {
    # Strings
    "UCASE": ("upper(_1)",),
    "LCASE": ("lower(_1)",),
    "LEN": ("length(_1)",),
    "SPLIT": ("split(_1, concat('\\Q', _2, '\\E'))",),
    "REGEXP_SPLIT_TO_ARRAY": ("split(_1, _2)",),
    "REGEXP_EXTRACT": ("regexp_extract(_2, _1, 0)", "regexp_extract(_2, _1, _3)"),
    "REGEXP_EXTRACT_ALL": ("regexp_extract_all(_2, _1, 0)", "regexp_extract_all(_2, _1, _3)"),
    "MASK": ("mask(_1, 'X', 'x', 'n', '-')",),
    "TO_BYTES": ("to_binary(_1, _2)",),
    "FROM_BYTES": ("to_char(_1, _2)",),
    "URL_EXTRACT_HOST": ("parse_url(_1, 'HOST')",),
    "URL_EXTRACT_PATH": ("parse_url(_1, 'PATH')",),
    "URL_EXTRACT_QUERY": ("parse_url(_1, 'QUERY')",),
    "URL_EXTRACT_PROTOCOL": ("parse_url(_1, 'PROTOCOL')",),
    "URL_EXTRACT_FRAGMENT": ("parse_url(_1, 'REF')",),
    "URL_EXTRACT_PARAMETER": ("parse_url(_1, 'QUERY', _2)",),
    "URL_DECODE_PARAM": ("url_decode(_1)",),
    "URL_ENCODE_PARAM": ("url_encode(_1)",),
    # Numbers
    "RANDOM": ("rand()",),
    # Time
    "UNIX_TIMESTAMP": ("unix_millis(current_timestamp())", "unix_millis(_1)"),
    "UNIX_DATE": ("unix_date(current_date())", "unix_date(_1)"),
    "FROM_UNIXTIME": ("timestamp_millis(_1)",),
    "FROM_DAYS": ("date_from_unix_date(_1)",),
    "TIMESTAMPTOSTRING": (
        "date_format(timestamp_millis(_1), _2)",
        "date_format(from_utc_timestamp(timestamp_millis(_1), _3), _2)",
    ),
    "STRINGTOTIMESTAMP": (
        "unix_millis(to_timestamp(_1, _2))",
        "unix_millis(to_utc_timestamp(to_timestamp(_1, _2), _3))",
    ),
    "FORMAT_TIMESTAMP": ("date_format(_1, _2)", "date_format(from_utc_timestamp(_1, _3), _2)"),
    "PARSE_TIMESTAMP": ("to_timestamp(_1, _2)", "to_utc_timestamp(to_timestamp(_1, _2), _3)"),
    "FORMAT_DATE": ("date_format(_1, _2)",),
    "PARSE_DATE": ("to_date(_1, _2)",),
    "DATETOSTRING": ("date_format(date_from_unix_date(_1), _2)",),
    "STRINGTODATE": ("unix_date(to_date(_1, _2))",),
    "PARSE_TIME": ("to_time(_1, _2)",),
    "CONVERT_TZ": ("to_utc_timestamp(from_utc_timestamp(to_utc_timestamp(_1, _2), _3), 'UTC')",),
    "TIMESTAMPSUB": ("timestampadd(_1, -(_2), _3)",),
    "DATEADD": ("cast(timestampadd(_1, _2, _3) as date)",),
    "DATESUB": ("cast(timestampadd(_1, -(_2), _3) as date)",),
    # JSON
    "EXTRACTJSONFIELD": ("get_json_object(_1, _2)",),
    "JSON_KEYS": ("json_object_keys(_1)",),
    "JSON_RECORDS": ("from_json(_1, 'map<string,string>')",),
    "JSON_ARRAY_CONTAINS": ("array_contains(from_json(_1, 'array<string>'), cast(_2 as string))",),
    "IS_JSON_STRING": ("try_parse_json(_1) is not null",),
    "TO_JSON_STRING": ("to_json(_1)",),
    # Collections
    "ARRAY_LENGTH": ("array_size(_1)",),
    "ARRAY_CONCAT": ("concat(_1, _2)",),
    "ARRAY_REMOVE": ("array_remove(_1, _2)",),
    "SLICE": ("slice(_1, _2, _3 - _2 + 1)",),
    "AS_MAP": ("map_from_arrays(_1, _2)",),
    "MAP_UNION": ("map_concat(_1, _2)",),
    # Where the column goes is decided by the compiler.
    "AS_VALUE": ("_1",),
}

_SORTED = (
    "transform(array_sort(collect_list(named_struct('o', _order, 'v', _1)), (a, b) -> "
    "case when a.o < b.o then -1 when a.o > b.o then 1 else 0 end), e -> e.v)"
)
#: Aggregates of ksqlDB; `_order` is the order of the records.
AGGREGATES: dict[str, tuple[str, ...]] = {
    "LATEST_BY_OFFSET": (
        "max_by(_1, _order) filter (where _1 is not null)",
        f"reverse(slice(reverse({_SORTED}), 1, _2))",
    ),
    "EARLIEST_BY_OFFSET": (
        "min_by(_1, _order) filter (where _1 is not null)",
        f"slice({_SORTED}, 1, _2)",
    ),
    "COLLECT_LIST": (_SORTED,),
    "COLLECT_SET": ("collect_set(_1)",),
    "TOPK": ("slice(sort_array(collect_list(_1), false), 1, _2)",),
    "TOPKDISTINCT": ("slice(sort_array(collect_set(_1), false), 1, _2)",),
    "COUNT_DISTINCT": ("approx_count_distinct(_1)",),
    "STDDEV_SAMPLE": ("stddev_samp(_1)",),
    "CORRELATION": ("corr(_1, _2)",),
}
_SPARK_AGGREGATES = """
COUNT SUM AVG MEAN MIN MAX MAX_BY MIN_BY ANY_VALUE FIRST LAST FIRST_VALUE LAST_VALUE COUNT_IF
BOOL_AND BOOL_OR EVERY SOME ANY STDDEV STDDEV_POP STDDEV_SAMP VARIANCE VAR_POP VAR_SAMP CORR
COVAR_POP COVAR_SAMP KURTOSIS SKEWNESS MEDIAN MODE PERCENTILE APPROX_PERCENTILE PERCENTILE_APPROX
APPROX_COUNT_DISTINCT ARRAY_AGG STRING_AGG LISTAGG BIT_AND BIT_OR BIT_XOR HISTOGRAM_NUMERIC
HLL_SKETCH_AGG TRY_SUM TRY_AVG
"""
SPARK_AGGREGATES = frozenset(_SPARK_AGGREGATES.split())


def name_of(node: exp.Expression) -> str:
    """The name of a called function, in capitals; "" if it is none."""
    return str(node.this).upper() if isinstance(node, exp.Anonymous) else ""


def is_aggregate(node: exp.Expression) -> bool:
    return name_of(node) in AGGREGATES or name_of(node) in SPARK_AGGREGATES


def rewritten(root: exp.Expression, order: exp.Expression | None = None) -> exp.Expression:
    """An expression in Spark's functions and operators; the given one stays as it was."""
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
    if name in ("TIMESTAMPADD", "TIMESTAMPSUB", "DATEADD", "DATESUB") and arguments:
        arguments[0] = _unit(arguments[0])
        node.set("expressions", arguments)
    if name == "CONCAT" and not any(isinstance(given, exp.Array) for given in arguments):
        # A null is an empty string there, and not the end of all others as in Spark.
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
    """STRUCT(a := 1) and MAP('a' := 1)."""
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
            simple = isinstance(given, exp.Column | exp.Literal | exp.Anonymous | exp.Var)
            column.replace(given if simple or column.parent is holder else exp.Paren(this=given))
    result: exp.Expression = holder.this
    return result
