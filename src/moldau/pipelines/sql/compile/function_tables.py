"""The functions of ksqlDB as Spark expressions. Functions that are not in these tables are Spark's of the
same name.

A template replaces a call with the same number of arguments, which are `_1`, `_2` and so on.
"""

from __future__ import annotations

_GEO_DISTANCE = (
    "2 * {} * asin(sqrt(power(sin(radians(_3 - _1) / 2), 2) "
    "+ cos(radians(_1)) * cos(radians(_3)) * power(sin(radians(_4 - _2) / 2), 2)))"
)

#: Templates by ksqlDB's name, one for each number of arguments.
SCALARS: dict[str, tuple[str, ...]] = {
    # Strings
    "UCASE": ("upper(_1)",),
    "LCASE": ("lower(_1)",),
    "LEN": ("length(_1)",),
    "SPLIT": ("split(_1, concat('\\Q', _2, '\\E'))",),
    "REGEXP_SPLIT_TO_ARRAY": ("split(_1, _2)",),
    "REGEXP_EXTRACT": ("regexp_extract(_2, _1, 0)", "regexp_extract(_2, _1, _3)"),
    "REGEXP_EXTRACT_ALL": ("regexp_extract_all(_2, _1, 0)", "regexp_extract_all(_2, _1, _3)"),
    "INSTR": (
        "instr(_1, _2)",
        "locate(_2, _1, _3)",
    ),
    "TRIM": ("trim(_1)",),
    "MASK": ("mask(_1, 'X', 'x', 'n', '-')",),
    "MASK_LEFT": ("concat(mask(left(_1, _2), 'X', 'x', 'n', '-'), substring(_1, _2 + 1))",),
    "MASK_RIGHT": (
        "concat(left(_1, greatest(length(_1) - _2, 0)), mask(right(_1, _2), 'X', 'x', 'n', '-'))",
    ),
    "MASK_KEEP_LEFT": ("concat(left(_1, _2), mask(substring(_1, _2 + 1), 'X', 'x', 'n', '-'))",),
    "MASK_KEEP_RIGHT": (
        "concat(mask(left(_1, greatest(length(_1) - _2, 0)), 'X', 'x', 'n', '-'), right(_1, _2))",
    ),
    "SPLIT_TO_MAP": ("str_to_map(_1, concat('\\Q', _2, '\\E'), concat('\\Q', _3, '\\E'))",),
    "INT_FROM_BYTES": (
        "cast(conv(if(hex(_1) >= '80000000', concat('FFFFFFFF', hex(_1)), hex(_1)), 16, -10) as int)",
    ),
    "BIGINT_FROM_BYTES": ("cast(conv(hex(_1), 16, -10) as bigint)",),
    "TO_BYTES": ("to_binary(_1, _2)",),
    "FROM_BYTES": ("to_char(_1, _2)",),
    "URL_EXTRACT_HOST": ("parse_url(_1, 'HOST')",),
    "URL_EXTRACT_PATH": ("parse_url(_1, 'PATH')",),
    "URL_EXTRACT_QUERY": ("parse_url(_1, 'QUERY')",),
    "URL_EXTRACT_PORT": ("cast(regexp_extract(parse_url(_1, 'AUTHORITY'), ':([0-9]+)$', 1) as int)",),
    "URL_EXTRACT_PROTOCOL": ("parse_url(_1, 'PROTOCOL')",),
    "URL_EXTRACT_FRAGMENT": ("parse_url(_1, 'REF')",),
    "URL_EXTRACT_PARAMETER": ("parse_url(_1, 'QUERY', _2)",),
    "URL_DECODE_PARAM": ("url_decode(_1)",),
    "URL_ENCODE_PARAM": ("url_encode(_1)",),
    # Numbers
    "RANDOM": ("rand()",),
    "ROUND": ("cast(round(_1, 0) as bigint)", "round(_1, _2)"),
    "TRUNC": (
        "cast(_1 as bigint)",
        "sign(_1) * floor(abs(_1) * power(10, _2)) / power(10, _2)",
    ),
    "GENERATE_SERIES": ("sequence(_1, _2)", "sequence(_1, _2, _3)"),
    "GEO_DISTANCE": (
        _GEO_DISTANCE.format("6371"),
        _GEO_DISTANCE.format("if(upper(left(_5, 1)) = 'M', 3959, 6371)"),
    ),
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
    "FORMAT_TIME": ("date_format(timestamp_micros(time_to_micros(_1)), _2)",),
    "TIMEADD": ("time_from_millis((time_to_millis(_3) + _2 * _1) % 86400000)",),
    "TIMESUB": ("time_from_millis((time_to_millis(_3) - _2 * _1 + 86400000) % 86400000)",),
    "CONVERT_TZ": ("to_utc_timestamp(from_utc_timestamp(to_utc_timestamp(_1, _2), _3), 'UTC')",),
    "TIMESTAMPSUB": ("timestampadd(_1, -(_2), _3)",),
    "DATEADD": ("cast(timestampadd(_1, _2, _3) as date)",),
    "DATESUB": ("cast(timestampadd(_1, -(_2), _3) as date)",),
    # JSON
    "EXTRACTJSONFIELD": ("get_json_object(_1, _2)",),
    "JSON_KEYS": ("json_object_keys(_1)",),
    "JSON_RECORDS": ("from_json(_1, 'map<string,string>')",),
    "JSON_ITEMS": ("from_json(_1, 'array<string>')",),
    "JSON_ARRAY_CONTAINS": ("array_contains(from_json(_1, 'array<string>'), cast(_2 as string))",),
    "IS_JSON_STRING": ("try_parse_json(_1) is not null",),
    "TO_JSON_STRING": ("to_json(_1)",),
    # Collections
    "ARRAY_LENGTH": ("array_size(_1)",),
    "ARRAY_CONCAT": ("concat(_1, _2)",),
    "ARRAY_REMOVE": ("array_remove(_1, _2)",),
    "SLICE": ("slice(_1, _2, _3 - _2 + 1)",),
    "ARRAY_SORT": (
        "sort_array(_1)",
        "sort_array(_1, upper(_2) not like 'DESC%')",
    ),
    "ENTRIES": (
        "transform(map_entries(_1), e -> named_struct('K', e.key, 'V', e.value))",
        "transform(if(_2, array_sort(map_entries(_1)), map_entries(_1)), "
        "e -> named_struct('K', e.key, 'V', e.value))",
    ),
    "TRANSFORM": (
        "transform(_1, _2)",
        "map_from_arrays(map_values(transform_values(_1, _2)), map_values(transform_values(_1, _3)))",
    ),
    "AS_MAP": ("map_from_arrays(_1, _2)",),
    "MAP_UNION": ("map_concat(_1, _2)",),
    # The compiler makes the column part of the value.
    "AS_VALUE": ("_1",),
}

_SORTED = (
    "transform(array_sort(collect_list(named_struct('o', _order, 'v', _1)), (a, b) -> "
    "case when a.o < b.o then -1 when a.o > b.o then 1 else 0 end), e -> e.v)"
)
#: The aggregates of ksqlDB; `_order` is the expression that orders records.
AGGREGATES: dict[str, tuple[str, ...]] = {
    "LATEST_BY_OFFSET": (
        "max_by(_1, _order) filter (where _1 is not null)",
        f"reverse(slice(reverse(filter({_SORTED}, v -> v is not null)), 1, _2))",
    ),
    "EARLIEST_BY_OFFSET": (
        "min_by(_1, _order) filter (where _1 is not null)",
        f"slice(filter({_SORTED}, v -> v is not null), 1, _2)",
    ),
    "COLLECT_LIST": (_SORTED,),
    "COLLECT_SET": ("collect_set(_1)",),
    "TOPK": ("slice(sort_array(collect_list(_1), false), 1, _2)",),
    "TOPKDISTINCT": ("slice(sort_array(collect_set(_1), false), 1, _2)",),
    "COUNT_DISTINCT": ("approx_count_distinct(_1)",),
    "STDDEV_SAMPLE": ("stddev_samp(_1)",),
    "CORRELATION": ("corr(_1, _2)",),
    "ATTR": ("if(min(_1) = max(_1) and count(_1) = count(*), min(_1), null)",),
    "HISTOGRAM": (
        "map_from_entries(transform(array_distinct(collect_list(_1)), e -> "
        "named_struct('k', e, 'v', cast(size(filter(collect_list(_1), o -> o = e)) as bigint))))",
    ),
}
_SPARK_AGGREGATES = """
COUNT SUM AVG MEAN MIN MAX MAX_BY MIN_BY ANY_VALUE FIRST LAST FIRST_VALUE LAST_VALUE COUNT_IF
BOOL_AND BOOL_OR EVERY SOME ANY STDDEV STDDEV_POP STDDEV_SAMP VARIANCE VAR_POP VAR_SAMP CORR
COVAR_POP COVAR_SAMP KURTOSIS SKEWNESS MEDIAN MODE PERCENTILE APPROX_PERCENTILE PERCENTILE_APPROX
APPROX_COUNT_DISTINCT ARRAY_AGG STRING_AGG LISTAGG BIT_AND BIT_OR BIT_XOR HISTOGRAM_NUMERIC
HLL_SKETCH_AGG TRY_SUM TRY_AVG
"""
SPARK_AGGREGATES = frozenset(_SPARK_AGGREGATES.split())

#: Functions that are the same in ksqlDB and Spark.
_SAME = """
ABS ACOS ASIN ATAN ATAN2 CBRT CEIL COS COSH COT DEGREES EXP FLOOR GREATEST LEAST LN LOG PI POWER RADIANS SIGN
SIN SINH SQRT TAN TANH ARRAY ARRAY_CONTAINS ARRAY_DISTINCT ARRAY_EXCEPT ARRAY_INTERSECT ARRAY_JOIN ARRAY_MAX
ARRAY_MIN ARRAY_UNION ELT MAP MAP_KEYS MAP_VALUES FILTER REDUCE CHR CONCAT CONCAT_WS INITCAP
JSON_ARRAY_LENGTH LPAD REGEXP_REPLACE REPLACE RPAD SUBSTRING UUID COALESCE IFNULL NULLIF CAST TIMESTAMPADD
EXPLODE FIELD STRUCT
"""
SAME = frozenset(_SAME.split())
#: Functions of ksqlDB that are not supported, and the alternatives.
UNSUPPORTED = {
    "CUBE_EXPLODE": "Use EXPLODE of an array, or GROUP BY.",
    "DOUBLE_FROM_BYTES": "Declare a column of type DOUBLE with the format KAFKA.",
    "ENCODE": "Use TO_BYTES(text, 'utf8') and FROM_BYTES(bytes, 'base64').",
    "JSON_CONCAT": "Use TO_JSON_STRING(MAP_UNION(JSON_RECORDS(a), JSON_RECORDS(b))).",
}
