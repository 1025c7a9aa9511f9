"""Whether a reader's schema can read data of a writer's schema: Java's `SchemaCompatibility`.

Every finding has the location of a JSON pointer into the reader's schema. Branches of unions are checked
with locations that start at the branch. A pair of named types is checked once: its findings are repeated
wherever the pair occurs, with the location of the first occurrence, and a pair that occurs within itself is
compatible. Java's answers are the same in all of this. Records that use each other by name form chains longer
than the Python stack, so a comparison is a recursion of `trampoline`; most pairs have their findings at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from moldau.schemas.avro.printer import written as text_of
from moldau.schemas.avro.tree import MISSING, Array, Enum, Field, Fixed, Map, Named, Record, Type, Union
from moldau.schemas.schema import Incompatible
from moldau.schemas.trampoline import Recursion, run

#: How many findings an answer has at most: repeated pairs can multiply them.
_MAX_FINDINGS: Final = 1_000
#: How many pairs of types a check compares at most, a matter of about a second.
_MAX_PAIRS: Final = 500_000

_PROMOTIONS = {
    ("long", "int"),
    ("float", "int"),
    ("float", "long"),
    ("double", "int"),
    ("double", "long"),
    ("double", "float"),
    ("bytes", "string"),
    ("string", "bytes"),
}
#: How an answer describes a finding; `%s` are the roles of the reader's and the writer's schema.
_DESCRIPTIONS = {
    "FIXED_SIZE_MISMATCH": (
        "The size of FIXED type field at path '{path}' in the %s schema does not match with the %s schema"
    ),
    "TYPE_MISMATCH": (
        "The type (path '{path}') of a field in the %s schema does not match with the %s schema"
    ),
    "NAME_MISMATCH": "The name of the schema has changed (path '{path}')",
    "MISSING_ENUM_SYMBOLS": (
        "The %s schema is missing enum symbols '{detail}' at path '{path}' in the %s schema"
    ),
    "MISSING_UNION_BRANCH": (
        "The %s schema is missing a type inside a union field at path '{path}' in the %s schema"
    ),
    "READER_FIELD_MISSING_DEFAULT_VALUE": (
        "The field '{detail}' at path '{path}' in the %s schema has no default value"
        " and is missing in the %s schema"
    ),
}

Findings = list[Incompatible]
Location = tuple[str | int, ...]
#: The findings of a pair of types, or the recursion that returns them.
Comparison = Findings | Recursion[Findings]
_COMPATIBLE: Final[Findings] = []


#: Unions with this many branches are searched by name.
_INDEXED_BRANCHES = 16


class CheckFailed(Exception):
    """The schemas cannot be compared; the message says why."""


def incompatibilities(reader: Type, writer: Type) -> Findings:
    """Return why data written with `writer` cannot be read with `reader`."""
    try:
        return run(_Check().result(reader, writer))
    except CheckFailed as failed:
        message = f"Unexpected exception during compatibility check: {failed}"
        return [Incompatible("UNEXPECTED_EXCEPTION", "/", message)]


class _Check:
    def __init__(self) -> None:
        self._pairs = 0
        #: The findings per pair of named types; None while the pair is compared.
        self._known: dict[tuple[int, int], Findings | None] = {}
        #: The named branches of large unions, by the names they can read.
        self._branches: dict[int, dict[str, list[Type]]] = {}

    def result(self, reader: Type, writer: Type) -> Recursion[Findings]:
        findings: Findings = yield self._compared(reader, writer, ())
        return findings

    def _compared(self, reader: Type, writer: Type, location: Location) -> Comparison:
        self._pairs += 1
        if self._pairs > _MAX_PAIRS:
            raise CheckFailed(f"the schemas need more than {_MAX_PAIRS} comparisons")
        if not isinstance(reader, Named) or not isinstance(writer, Named):
            return self._compare(reader, writer, location)
        pair = (id(reader), id(writer))
        if pair in self._known:
            return self._known[pair] or _COMPATIBLE
        self._known[pair] = None
        if isinstance(reader, Record) and isinstance(writer, Record):
            return self._records(reader, writer, location)
        found = self._known[pair] = _between_named(reader, writer, location)
        return found

    def _compare(self, reader: Type, writer: Type, location: Location) -> Comparison:
        """Compare types of which at most one is named."""
        match reader, writer:
            case Union(), Union():
                return self._between_unions(reader, writer, location)
            case _, Union():
                return self._from_union(reader, writer, location)
            case Union(), _:
                return self._into_union(reader, writer, location)
            case Array(), Array():
                return self._compared(reader.items, writer.items, (*location, "items"))
            case Map(), Map():
                return self._compared(reader.values, writer.values, (*location, "values"))
        if reader.kind == writer.kind or (reader.kind, writer.kind) in _PROMOTIONS:
            return _COMPATIBLE
        return [_type_mismatch(reader, writer, location)]

    def _candidates(self, reader: Union, writer: Type) -> Iterable[Type]:
        """Return the branches that may read the writer's type: of named types only those of its name."""
        if len(reader.branches) < _INDEXED_BRANCHES or not isinstance(writer, Named):
            return reader.branches
        index = self._branches.get(id(reader))
        if index is None:
            index = self._branches[id(reader)] = {}
            for branch in reader.branches:
                for name in _readable_names(branch):
                    index.setdefault(name, []).append(branch)
        return dict.fromkeys((*index.get(writer.name.simple, ()), *index.get(writer.name.full, ())))

    def _between_unions(self, reader: Union, writer: Union, location: Location) -> Recursion[Findings]:
        """Every branch of the writer must be readable with a branch of the reader."""
        found = []
        for index, branch in enumerate(writer.branches):
            self._pairs += 1
            if not (yield self._is_readable(reader, branch)):
                found.append(_missing_branch(branch, (*location, index)))
        return found[:_MAX_FINDINGS]

    def _from_union(self, reader: Type, writer: Union, location: Location) -> Recursion[Findings]:
        found: Findings = []
        for index, branch in enumerate(writer.branches):
            found += yield self._compared(reader, branch, (*location, index))
            if len(found) >= _MAX_FINDINGS:
                break
        return found[:_MAX_FINDINGS]

    def _into_union(self, reader: Union, writer: Type, location: Location) -> Recursion[Findings]:
        is_readable = yield self._is_readable(reader, writer)
        return _COMPATIBLE if is_readable else [_missing_branch(writer, location)]

    def _is_readable(self, reader: Union, writer: Type) -> Recursion[bool]:
        for branch in self._candidates(reader, writer):
            findings = self._compared(branch, writer, ())
            if type(findings) is not list:
                findings = yield findings
            if not findings:
                return True
        return False

    def _records(self, reader: Record, writer: Record, location: Location) -> Recursion[Findings]:
        found: Findings = [*_names(reader, writer, location)]
        for position, field in enumerate(reader.fields):
            written = _writer_field(writer, field, position)
            here = (*location, "fields", position)
            findings: Comparison = _COMPATIBLE
            if written is not None:
                findings = self._compared(field.type, written.type, (*here, "type"))
            elif field.default is MISSING:
                findings = self._without_default(field, writer, here)
            if type(findings) is not list:
                findings = yield findings
            found += findings
            if len(found) >= _MAX_FINDINGS:
                break
        self._known[id(reader), id(writer)] = found = found[:_MAX_FINDINGS]
        return found

    def _without_default(self, field: Field, writer: Record, location: Location) -> Comparison:
        if isinstance(field.type, Enum) and field.type.default is not None:
            return self._compared(field.type, writer, (*location, "type"))
        return [_finding("READER_FIELD_MISSING_DEFAULT_VALUE", location, field.name)]


def _between_named(reader: Named, writer: Named, location: Location) -> Findings:
    """Compare named types of which at most one is a record."""
    match reader, writer:
        case Enum(), Enum():
            return _names(reader, writer, location) + _symbols(reader, writer, location)
        case Fixed(), Fixed():
            return _names(reader, writer, location) + _size(reader, writer, location)
    return [_type_mismatch(reader, writer, location)]


def _writer_field(writer: Record, field: Field, position: int) -> Field | None:
    """Return the writer's field with the name or an alias of the reader's."""
    by_name = writer.by_name
    direct = by_name.get(field.name)
    if not field.aliases:
        return direct
    matching = [direct] if direct else []
    matching += [by_name[alias] for alias in field.aliases if alias in by_name]
    if len(matching) > 1:
        raise CheckFailed(
            f"Reader record field {field.name} type:{field.type.kind.upper()} pos:{position}"
            f" matches multiple fields in writer record schema {text_of(writer)}"
        )
    return matching[0] if matching else None


def _names(reader: Named, writer: Named, location: Location) -> Findings:
    if reader.name.simple == writer.name.simple or writer.name.full in _alias_names(reader):
        return _COMPATIBLE
    return [_finding("NAME_MISMATCH", (*location, "name"), f"expected: {writer.name.full}")]


def _readable_names(branch: Type) -> Iterator[str]:
    if isinstance(branch, Named):
        yield branch.name.simple
        yield from _alias_names(branch)


def _alias_names(named: Named) -> Iterator[str]:
    for alias in named.aliases:
        in_null_namespace = alias.namespace is None and named.name.namespace is not None
        yield f".{alias.simple}" if in_null_namespace else alias.full


def _symbols(reader: Enum, writer: Enum, location: Location) -> Findings:
    missing = set(writer.symbols).difference(reader.symbols)
    if not missing or reader.default is not None:
        return _COMPATIBLE
    symbols = ", ".join(sorted(missing))
    return [_finding("MISSING_ENUM_SYMBOLS", (*location, "symbols"), f"[{symbols}]")]


def _size(reader: Fixed, writer: Fixed, location: Location) -> Findings:
    if reader.size == writer.size:
        return _COMPATIBLE
    detail = f"expected: {writer.size}, found: {reader.size}"
    return [_finding("FIXED_SIZE_MISMATCH", (*location, "size"), detail)]


def _missing_branch(writer: Type, location: Location) -> Incompatible:
    detail = f"reader union lacking writer type: {writer.kind.upper()}"
    return _finding("MISSING_UNION_BRANCH", location, detail)


def _type_mismatch(reader: Type, writer: Type, location: Location) -> Incompatible:
    kinds = reader.kind.upper(), writer.kind.upper()
    return _finding(
        "TYPE_MISMATCH",
        location,
        f"reader type: {kinds[0]} not compatible with writer type: {kinds[1]}",
    )


def _finding(kind: str, location: Location, detail: str) -> Incompatible:
    path = "/" + "/".join(map(str, location))
    description = _DESCRIPTIONS[kind].format(path=path, detail=detail)
    message = f"{{errorType:'{kind}', description:'{description}', additionalInfo:'{detail}'}}"
    return Incompatible(kind, path, message)
