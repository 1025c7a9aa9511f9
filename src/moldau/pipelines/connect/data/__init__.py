"""Connect's data model: schemas, structs, logical types, headers and records. Pure.

Values are plain Python: int, float, `decimal.Decimal`, bool, str, bytes, aware `datetime`, list, dict and
`Struct`.
"""
