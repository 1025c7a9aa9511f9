"""Bounds for the nesting and the number of parts of Avro data.

fastavro reads and writes nested data by recursion in C, and a few thousand levels end the process. A schema
that contains itself, or a long chain of named types, allows any number of levels. Records and nulls take no
bytes of their own, so a few bytes, or none, can stand for billions of them. Data of schemas that allow such
things is walked before it is read or written, without recursion; data of any other schema costs nothing.

A level is a record, array, map or union that contains another value. A part is any value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from moldau.client.serdes import SerializationError

MAX_LEVELS: Final = 500
#: The maximum number of parts: this constant plus a number per byte.
_MAX_PARTS: Final = 100_000
_MAX_PARTS_PER_BYTE: Final = 16
#: Types with more parts than this, and than this for each byte, need a check.
_FEW_PARTS: Final = 16
_FEW_PARTS_PER_BYTE: Final = 8

_VARINTS: Final = frozenset({"int", "long", "enum"})
_SIZES: Final = {"null": 0, "boolean": 1, "float": 4, "double": 8}
_NAMED: Final = frozenset({"record", "error", "enum", "fixed"})
_BUILTIN: Final = _VARINTS | _NAMED | _SIZES.keys() | {"string", "bytes", "array", "map"}
#: Kinds of nodes; a varint, a length with bytes, or a number of bytes has no children.
_VARINT, _BYTES, _FIXED, _RECORD, _UNION, _ARRAY, _MAP = range(7)
_MAX_VARINT_BYTES: Final = 10


class NestedTooDeeply(SerializationError):
    def __init__(self) -> None:
        super().__init__(f"the Avro data is nested deeper than {MAX_LEVELS} levels")


class TooManyParts(SerializationError):
    def __init__(self) -> None:
        super().__init__("the Avro data has too many parts that take no bytes")


class _Node:
    """A type of the schema. Types that are named again are the same node, so nodes form a graph."""

    __slots__ = ("children", "defaults", "kind", "names", "size")

    def __init__(self) -> None:
        self.kind = _FIXED
        self.size = 0
        self.children: tuple[_Node, ...] = ()
        #: Of the fields of a record or the branches of a union.
        self.names: tuple[str, ...] = ()
        self.defaults: tuple[Any, ...] = ()


class AvroBounds:
    """The bounds for data of one schema; `named` has its named types by their full names."""

    def __init__(self, schema: Any, named: Mapping[str, Any]) -> None:
        self._root, nodes = _graph(schema, named)
        self._checked = _needs_check(self._root)
        #: The error of writing the defaults of the schema.
        self._unwritable: SerializationError | None = None
        try:
            for node in nodes:
                for typed in zip(node.children, node.defaults, strict=False):
                    _walk(typed, _parts, _MAX_PARTS)
        except SerializationError as error:
            self._unwritable = error

    def check_bytes(self, data: bytes) -> None:
        """Raise `NestedTooDeeply`, `TooManyParts`, or `SerializationError` if the bytes end too early."""
        if self._checked:
            _walk(self._root, _Bytes(data).children, _MAX_PARTS + _MAX_PARTS_PER_BYTE * len(data))

    def check_value(self, value: Any) -> None:
        """Raise `NestedTooDeeply` for a value with too many levels, or if the defaults have no end."""
        if self._unwritable is not None:
            raise self._unwritable
        if self._checked:
            _walk((self._root, value), _parts)


def _walk(root: Any, children: Callable[[Any], Iterator[Any] | None], most: int | None = None) -> None:
    """Visit all below `root`, depth first; at most a number of parts."""
    stack = [iter((root,))]
    visited = 0
    while stack:
        for each in stack[-1]:
            visited += 1
            if most is not None and visited > most:
                raise TooManyParts
            below = children(each)
            if below is not None:
                stack.append(below)
                break
        else:
            stack.pop()
        if len(stack) > MAX_LEVELS:
            raise NestedTooDeeply


class _Bytes:
    """Skips encoded data."""

    def __init__(self, data: bytes) -> None:
        self._data, self._position = data, 0

    def children(self, node: _Node) -> Iterator[_Node] | None:
        """Skip data without children; return the types of the children that follow otherwise."""
        kind = node.kind
        if kind == _VARINT:
            self._number()
        elif kind == _FIXED:
            self._skip(node.size)
        elif kind == _BYTES:
            self._skip(self._number())
        elif kind == _RECORD:
            return iter(node.children)
        elif kind == _UNION:
            index = self._number()
            if not 0 <= index < len(node.children):
                raise SerializationError(f"not of this Avro schema: a union has no branch {index}")
            return iter((node.children[index],))
        else:
            return self._items(node)
        return None

    def _items(self, node: _Node) -> Iterator[_Node]:
        [item] = node.children
        while count := self._number():
            if count < 0:
                self._number()
            for _ in range(abs(count)):
                if node.kind == _MAP:
                    self._skip(self._number())
                yield item

    def _skip(self, size: int) -> None:
        self._position += size
        if size < 0 or self._position > len(self._data):
            raise _ends_early()

    def _number(self) -> int:
        data, position = self._data, self._position
        value = 0
        for index, byte in enumerate(data[position : position + _MAX_VARINT_BYTES]):
            value |= (byte & 0x7F) << 7 * index
            if byte < 0x80:
                self._position = position + index + 1
                return (value >> 1) ^ -(value & 1)
        raise _ends_early()


def _ends_early() -> SerializationError:
    return SerializationError("not of this Avro schema: the data ends within a value")


def _parts(typed: tuple[_Node, Any]) -> Iterator[tuple[_Node, Any]] | None:
    """Return the parts of a value with their types; None if it has none."""
    node, value = typed
    is_map = isinstance(value, Mapping)
    if not is_map and (isinstance(value, str | bytes | bytearray) or not isinstance(value, Sequence)):
        return None
    if node.kind == _RECORD and is_map:
        fields = zip(node.names, node.children, node.defaults, strict=True)
        return iter([(child, value.get(name, default)) for name, child, default in fields])
    if node.kind == _MAP and is_map:
        return ((node.children[0], each) for each in value.values())
    if node.kind == _ARRAY and not is_map:
        return ((node.children[0], each) for each in value)
    return _branches(node, value) if node.kind == _UNION else None


def _branches(node: _Node, value: Any) -> Iterator[tuple[_Node, Any]]:
    """Return the branches that may hold a value; a pair names its branch."""
    if isinstance(value, tuple) and len(value) == 2 and value[0] in node.names:
        return iter([(node.children[node.names.index(value[0])], value[1])])
    kinds = (_RECORD, _MAP) if isinstance(value, Mapping) else (_ARRAY,)
    return iter([(each, value) for each in node.children if each.kind in kinds and _fits(each, value)])


def _fits(node: _Node, value: Any) -> bool:
    """Return whether a record has all fields without a default."""
    if node.kind != _RECORD:
        return True
    fields = zip(node.names, node.defaults, strict=True)
    return all(default is not _MISSING or name in value for name, default in fields)


_MISSING: Final = object()


def _graph(schema: Any, named: Mapping[str, Any]) -> tuple[_Node, list[_Node]]:
    """Return the node of a schema, and all nodes that it reaches."""
    known: dict[str, _Node] = {}
    nodes: list[_Node] = []
    waiting: list[tuple[_Node, Any]] = []

    def node_of(schema: Any) -> _Node:
        while isinstance(schema, dict) and not _is_builtin(schema["type"]):
            schema = schema["type"]
        name = _name(schema)
        if name in known:
            return known[name]
        node = _Node()
        if name is not None and (name in named or isinstance(schema, dict)):
            known[name] = node
            schema = named.get(name, schema)
        waiting.append((node, schema))
        nodes.append(node)
        return node

    root = node_of(schema)
    while waiting:
        _fill(*waiting.pop(), node_of)
    return root, nodes


def _fill(node: _Node, schema: Any, node_of: Callable[[Any], _Node]) -> None:
    kind = schema if isinstance(schema, list | str) else schema["type"]
    if isinstance(kind, list):
        node.kind, node.names = _UNION, tuple(map(_branch_name, kind))
        node.children = tuple(map(node_of, kind))
    elif kind in ("record", "error"):
        fields = schema["fields"]
        node.kind, node.names = _RECORD, tuple(each["name"] for each in fields)
        node.children = tuple(node_of(each["type"]) for each in fields)
        node.defaults = tuple(each.get("default", _MISSING) for each in fields)
    elif kind in ("array", "map"):
        node.kind = _ARRAY if kind == "array" else _MAP
        node.children = (node_of(schema["items" if kind == "array" else "values"]),)
    elif kind in ("string", "bytes"):
        node.kind = _BYTES
    elif kind in _VARINTS:
        node.kind = _VARINT
    else:
        node.kind, node.size = _FIXED, schema["size"] if kind == "fixed" else _SIZES[kind]


def _branch_name(schema: Any) -> str:
    return _name(schema) or str(schema["type"] if isinstance(schema, dict) else schema)


def _name(schema: Any) -> str | None:
    """Return the full name of a named type; None for others."""
    if isinstance(schema, str):
        return None if _is_builtin(schema) else schema
    return str(schema["name"]) if isinstance(schema, dict) and schema["type"] in _NAMED else None


def _is_builtin(kind: Any) -> bool:
    return isinstance(kind, str) and kind in _BUILTIN


class _Size:
    """The least size of a value: levels of its type, parts without a byte between them, and bytes."""

    __slots__ = ("least_bytes", "levels", "parts")

    def __init__(self, node: _Node, below: list[_Size]) -> None:
        self.levels: int = 1 + max((each.levels for each in below), default=0)
        self.parts: int = 1
        self.least_bytes: int = 1
        if node.kind == _FIXED:
            self.least_bytes = node.size
        elif node.kind == _RECORD:
            self.parts += sum(each.parts for each in below)
            self.least_bytes = sum(each.least_bytes for each in below)

    @property
    def is_large(self) -> bool:
        return self.levels >= MAX_LEVELS or self.parts > _FEW_PARTS + _FEW_PARTS_PER_BYTE * self.least_bytes


def _needs_check(root: _Node) -> bool:
    """Return whether data of the graph may be large: cycles, long paths, and values that take few bytes."""
    sizes: dict[int, _Size] = {}
    above = {id(root)}
    stack = [(root, iter(root.children))]
    while stack:
        node, children = stack[-1]
        for child in children:
            if id(child) in above:
                return True
            if id(child) not in sizes:
                stack.append((child, iter(child.children)))
                above.add(id(child))
                break
        else:
            stack.pop()
            above.discard(id(node))
            below = [sizes[id(each)] for each in node.children]
            size = sizes[id(node)] = _Size(node, below)
            if size.is_large or (node.kind == _ARRAY and below[0].least_bytes == 0):
                return True
    return False
