"""Avro schemas: canonical text, rules for new schemas, compatibility, hostile input."""

from __future__ import annotations

import json
import time

import pytest

from moldau.schemas.avro import parse
from moldau.schemas.guid import guid
from moldau.schemas.schema import InvalidSchema, Reference


def record(*fields: str, name: str = "R", extra: str = "") -> str:
    return f'{{"type":"record","name":"{name}"{extra},"fields":[{",".join(fields)}]}}'


def field(name: str, type_text: str, extra: str = "") -> str:
    return f'{{"name":"{name}","type":{type_text}{extra}}}'


def kinds(reader: str, writer: str) -> list[tuple[str, str]]:
    return [(found.type, found.path) for found in parse(reader).incompatibilities(parse(writer))]


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ('{"type":"string"}', '"string"'),
        ('// comment\n"int" /* end */', '"int"'),
        ('{"scale":2,"type":"bytes","precision":4}', '{"type":"bytes","scale":2,"precision":4}'),
        (
            '{"fields":[],"doc":"d","name":"a.b.R","aliases":["S","x.T"],"p":1e10,"type":"record"}',
            '{"type":"record","name":"R","namespace":"a.b","doc":"d","fields":[],"p":1.0E10,"aliases":["S","x.T"]}',
        ),
        (
            record(field("f", '"double"', ',"default":"NaN"'), field("g", '"R"', ',"order":"IGNORE"')),
            record(field("f", '"double"', ',"default":"NaN"'), field("g", '"R"', ',"order":"ignore"')),
        ),
        (
            record(field("f", '{"type":"enum","name":"E","namespace":"","symbols":[]}'), name="n.R"),
            '{"type":"record","name":"R","namespace":"n","fields":[{"name":"f","type":'
            '{"type":"enum","name":"E","namespace":"","symbols":[]}}]}',
        ),
        (
            record(field("f", '"string"', ',"default":"\\u001f\\u00e9\\/"')),
            record(field("f", '"string"', ',"default":"\\u001Fé/"')),
        ),
    ],
)
def test_canonical_text_is_javas(text: str, canonical: str) -> None:
    assert parse(text).canonical == canonical
    assert parse(canonical).canonical == canonical


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"type":"bad-record"}', "Unknown schema: org.apache.avro.compiler.UnresolvedSchema_0"),
        (record(field("f", '"str"')), "Undefined schema: str"),
        ('["null","null"]', "Duplicate in union:null"),
        ('{"type":"enum","name":"E","symbols":["A","A"]}', "Duplicate enum symbol: A"),
        (
            '{"type":"enum","name":"E","symbols":["A"],"default":"B"}',
            "The Enum Default: B is not in the enum symbol set: [A]",
        ),
        ('{"type":"fixed","name":"F"}', 'Invalid or no size: {"type":"fixed","name":"F"}'),
        ('{"type":"fixed","name":"int","size":1}', "Schemas may not be named after primitives: int"),
        (
            record(field("f", '"int"'), field("f", '"long"')),
            "Duplicate field f in record R: f type:LONG pos:1 and f type:INT pos:0.",
        ),
        (record(field("f", record(name="R")), field("g", '"R"'), name="R"), "Can't redefine: R"),
        (record(field("bad-name", '"int"')), "Illegal character in: bad-name"),
        ('"int" "long"', 'dangling content after end of schema: "long"'),
    ],
)
def test_invalid_schemas_have_javas_message(text: str, message: str) -> None:
    with pytest.raises(InvalidSchema) as raised:
        parse(text)
    assert str(raised.value) == message


def test_syntax_error_names_the_token() -> None:
    with pytest.raises(InvalidSchema, match="JsonParseException: Unrecognized token 'non'"):
        parse("non-avro schema string")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            record(field("f", '"string"', ',"default":null')),
            'Invalid default for field f: null not a "string"',
        ),
        (
            record(extra=',"namespace":"a-bad.n"'),
            'Namespace part "a-bad" is invalid: Illegal character in: a-bad',
        ),
        (record(field("é", '"int"')), "Illegal initial character: é"),
        (record(field("f", '"R"', ',"default":{}')), "Schema fields not set yet"),
    ],
)
def test_rules_for_new_schemas_apply_only_in_validate(text: str, message: str) -> None:
    schema = parse(text)
    with pytest.raises(InvalidSchema) as raised:
        schema.validate(False)
    assert str(raised.value) == message


@pytest.mark.parametrize(
    "text",
    [
        record(field("f", '["null","string"]', ',"default":"any branch"')),
        record(field("f", '{"type":"map","values":"int"}', ',"default":{"a":1}')),
        record(field("f", '"float"', ',"default":1')),
    ],
)
def test_valid_defaults(text: str) -> None:
    parse(text).validate(False)


def chain(levels: int, *names: str, default: str = "", prefix: str = "r") -> list[str]:
    """Return fields that define R0, R1, …: records whose fields of these names are the previous record."""
    records = [record(name="R0")]
    for level in range(1, levels):
        uses = [field(name, f'"R{level - 1}"', default) for name in names]
        records.append(record(*uses, name=f"R{level}"))
    return [field(f"{prefix}{level}", text, default) for level, text in enumerate(records)]


@pytest.mark.parametrize("use", [pytest.param([], id="in order"), pytest.param(["first"], id="used before")])
def test_defaults_of_defaults_are_checked_once(use: list[str]) -> None:
    empty = ',"default":{}'
    uses = [field(name, '"R59"', empty) for name in use]
    started = time.process_time()
    parse(record(*uses, *chain(60, "a", "b", default=empty), name="Root")).validate(False)
    assert time.process_time() - started < 2


def test_default_of_a_long_chain_of_records_is_checked() -> None:
    empty = ',"default":{}'
    uses = field("u", '{"type":"array","items":"R599"}', ',"default":[{}]')
    parse(record(*chain(600, "a", default=empty), uses, name="Root")).validate(False)


def test_checks_of_defaults_are_bounded_where_unions_multiply_them() -> None:
    """Each record of a union is tried for each object, and none is valid because of the innermost value."""
    pairs, default = [field("x0", record(name="A0")), field("y0", record(name="B0"))], "1"
    for level in range(1, 60):
        inner = field("f", f'["A{level - 1}","B{level - 1}"]')
        pairs += [field(f"{name}{level}", record(inner, name=f"{name}{level}")) for name in "AB"]
        default = f'{{"f":{default}}}'
    text = record(*pairs, field("last", '"A59"', f',"default":{default}'), name="Root")
    started = time.process_time()
    with pytest.raises(InvalidSchema, match="Invalid default for field last"):
        parse(text).validate(False)
    assert time.process_time() - started < 2


def test_number_of_checks_of_defaults_is_bounded() -> None:
    branches = ",".join(record(field("f", '"int"'), name=f"R{index}") for index in range(500))
    items = ",".join(["{}"] * 1_000)
    branches += "," + record(name="Empty")
    text = record(field("f", f'{{"type":"array","items":[{branches}]}}', f',"default":[{items}]'))
    with pytest.raises(InvalidSchema, match="The default values need more than 500000 checks"):
        parse(text).validate(False)


def test_references_stay_names_unless_resolved() -> None:
    used = '{"type":"enum","name":"Color","namespace":"n","symbols":["RED"]}'
    schema = parse(record(field("c", '"n.Color"')), {"n.Color": used})
    assert schema.canonical == record(field("c", '"n.Color"'))
    assert schema.formatted("resolved") == record(field("c", used))


def test_normalized_sorts_and_types_defaults() -> None:
    text = record(
        field("f", '"double"', ',"default":1,"zz":1,"aa":{"d":1,"c":2}'),
        field("g", '{"type":"bytes","x":1,"scale":0,"precision":4,"logicalType":"decimal"}'),
        extra=',"doc":"","aliases":["Z","A"]',
    )
    assert parse(text).normalized().canonical == (
        '{"type":"record","name":"R","fields":['
        '{"name":"f","type":"double","default":1.0,"aa":{"c":2,"d":1},"zz":1},'
        '{"name":"g","type":{"type":"bytes","logicalType":"decimal","precision":4,"scale":0,"x":1}}'
        '],"aliases":["A","Z"]}'
    )


@pytest.mark.parametrize(
    ("reader", "writer", "expected"),
    [
        ('"long"', '"int"', []),
        ('"int"', '"long"', [("TYPE_MISMATCH", "/")]),
        ('["null","long"]', '"int"', []),
        ('["null"]', '["null","int"]', [("MISSING_UNION_BRANCH", "/1")]),
        ('"int"', '["int","string"]', [("TYPE_MISMATCH", "/1")]),
        (record(name="n.R"), record(name="m.R"), []),
        (record(name="S"), record(name="R"), [("NAME_MISMATCH", "/name")]),
        (record(name="S", extra=',"aliases":["R"]'), record(name="R"), []),
        (record(field("f", '"int"')), record(), [("READER_FIELD_MISSING_DEFAULT_VALUE", "/fields/0")]),
        (record(field("f", '"int"', ',"default":1')), record(), []),
        (record(field("g", '"int"', ',"aliases":["f"]')), record(field("f", '"int"')), []),
        (
            '{"type":"array","items":"int"}',
            '{"type":"array","items":"string"}',
            [("TYPE_MISMATCH", "/items")],
        ),
        (
            '{"type":"enum","name":"E","symbols":["A"]}',
            '{"type":"enum","name":"E","symbols":["A","B"]}',
            [("MISSING_ENUM_SYMBOLS", "/symbols")],
        ),
        (
            '{"type":"enum","name":"E","symbols":["A"],"default":"A"}',
            '{"type":"enum","name":"E","symbols":["A","B"]}',
            [],
        ),
        (
            '{"type":"fixed","name":"F","size":1}',
            '{"type":"fixed","name":"F","size":2}',
            [("FIXED_SIZE_MISMATCH", "/size")],
        ),
        (record(field("next", '["null","R"]')), record(field("next", '["null","R"]')), []),
    ],
)
def test_compatibility(reader: str, writer: str, expected: list[tuple[str, str]]) -> None:
    assert kinds(reader, writer) == expected


def test_the_line_of_a_finding_names_the_roles() -> None:
    (found,) = parse(record(field("f2", '"string"'))).incompatibilities(parse(record()))
    assert found.line("old", "new") == (
        "{errorType:'READER_FIELD_MISSING_DEFAULT_VALUE', description:'The field 'f2' at path '/fields/0' in"
        " the old schema has no default value and is missing in the new schema', additionalInfo:'f2'}"
    )


def test_hostile_schemas_are_refused_quickly() -> None:
    started = time.monotonic()
    for text in ("[" * 100_000, '{"type":"array","items":' * 500 + '"int"' + "}" * 500, "1" * 100_000):
        with pytest.raises(InvalidSchema):
            parse(text)
    assert time.monotonic() - started < 2


def test_findings_are_bounded_where_shared_types_multiply_them() -> None:
    def nested(leaf: str) -> str:
        inner = leaf
        for level in range(30):
            name = f"L{level}"
            inner = record(
                field("a", inner), field("b", json.dumps(f"L{level - 1}" if level else "int")), name=name
            )
        return inner

    assert len(parse(nested('"int"')).incompatibilities(parse(nested('"string"')))) == 1_000


def test_long_chain_of_records_is_compared() -> None:
    def schema(prefix: str, leaf: str) -> str:
        """Fields of different names define the records, so that only the last field is compared."""
        fields = chain(400, "a", default=',"default":{}', prefix=prefix)
        fields[0] = field(f"{prefix}0", record(field("x", leaf), name="R0"), ',"default":{}')
        return record(*fields, field("last", '["null",{"type":"map","values":"R399"}]'), name="Root")

    assert kinds(schema("f", '"long"'), schema("g", '"int"')) == []
    found = kinds(schema("f", '"int"'), schema("g", '"long"'))
    assert found == [("MISSING_UNION_BRANCH", "/fields/400/type/1")]


def test_long_chain_of_references_is_written_and_compared() -> None:
    names = [f"R{level}" for level in range(400)]
    texts = [record(name="R0"), *(record(field("a", f'"R{i}"'), name=f"R{i + 1}") for i in range(399))]
    references = dict(zip(names, texts, strict=True))
    schemas = [parse(record(field("last", '"R399"'), name="Root"), references) for _ in range(2)]
    assert schemas[0].canonical == record(field("last", '"R399"'), name="Root")
    assert schemas[0].formatted("resolved").count('"type":"record"') == 401
    assert schemas[0].normalized().canonical == schemas[0].canonical
    assert schemas[0].incompatibilities(schemas[1]) == []


def test_definitions_that_nest_too_deeply_at_their_first_use_are_refused() -> None:
    with pytest.raises(InvalidSchema, match="nested too deeply"):
        parse(record(field("first", '"R399"'), *chain(400, "a"), name="Root"))


def test_guid_is_the_digest_of_text_and_references() -> None:
    text = '{"type":"record","name":"myrecord","fields":[{"name":"f","type":"string"}]}'
    assert guid(text) == "7fedc7d0-253f-7b10-3e01-31a84bb740b0"
    assert guid(text, [Reference("a", "b", 1)]) != guid(text) != guid(text, metadata={})
