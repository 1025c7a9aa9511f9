"""Writes the source of a decoder: one function for one message in one version.

`Decoder` walks the declaration. Fields of fixed width are collected in `run` up to the next field of variable
length; then the run is read with one `unpack_from`, together with the length prefix of that field (its first
byte, if it is a varint). Structs and arrays are inlined, so reading an element calls only `unpack`.

Reading past the end raises `struct.error` or `IndexError`; slices do not, so they are checked. The elements
of an array, each of its smallest size, must fit into the remaining bytes.
"""

from __future__ import annotations

import struct

from moldau.protocol import primitives
from moldau.protocol.fields import Field, Scalar, StructType
from moldau.protocol.schema import Message
from moldau.protocol.writer import Writer, holds_records, smallest_type_size

_HELPERS = (
    "read_uvarint",
    "skip_tags",
    "long_uvarint",
    "long_string_length",
    "null_error",
    "length_error",
    "tag_error",
)


class Decoder(Writer):
    def __init__(self, message: type[Message], version: int) -> None:
        super().__init__(message, version)
        self.as_view = holds_records(message, version)
        self.run: list[tuple[str, str]] = []
        self.constants.update({name: getattr(primitives, name) for name in _HELPERS})
        self.constants["new"] = object.__new__

    def write(self) -> str:
        with self.block("def decode(data, pos):"):
            kind = "memoryview" if self.as_view else "bytes"
            with self.block(f"if type(data) is not {kind}:"):
                self.line(f"data = {kind}(data)")
            self.line("size = len(data)")
            self.struct_into("o", self.message)
            self.flush()
            self.line("return o, pos")
        return self.source()

    def flush(self) -> None:
        """Generate one call that reads the fields collected in `run`."""
        run, self.run = self.run, []
        if not run:
            return
        format = "".join(code for _, code in run)
        if format == "B":
            self.line(f"{run[0][0]} = data[pos]")
            self.line("pos += 1")
            return
        targets = ", ".join(target for target, _ in run) + ("," if len(run) == 1 else "")
        self.line(f"{targets} = {self.struct_method('unpack_from', format)}(data, pos)")
        self.line(f"pos += {struct.calcsize('>' + format)}")

    def struct_into(self, target: str, struct_type: StructType) -> None:
        """Create a struct and read its fields; the last of them may remain in `run`."""
        self.line(f"{target} = new({self.constant(struct_type.__name__, struct_type)})")
        placed, tagged, absent = self.split_fields(struct_type.FIELDS)
        for field in absent + tagged:
            self.line(f"{target}.{field.name} = {self.default(field)}")
        for field in placed:
            self.field(f"{target}.{field.name}", field)
        if self.flexible:
            self.tagged_fields(target, tagged)

    def field(self, target: str, field: Field) -> None:
        path = f"{self.message.__name__}.{field.name}"
        if field.is_array:
            self.array(target, field, path)
        elif isinstance(field.type, StructType):
            tagged = field.tagged.has(self.version)
            self.nested(target, field.type, self.is_nullable(field), tagged=tagged)
        else:
            self.scalar(target, field.type, self.is_nullable(field), path)

    def scalar(self, target: str, kind: Scalar, nullable: bool, path: str) -> None:
        if kind.format is None:
            self.variable(target, kind, nullable, path)
        else:
            self.run.append((target, kind.format))

    def nested(self, target: str, struct_type: StructType, nullable: bool, *, tagged: bool) -> None:
        inner = self.name("o")
        if not nullable:
            self.struct_into(inner, struct_type)
            self.line(f"{target} = {inner}")
            return
        marker = self.name("n")
        self.run.append((marker, "b"))
        self.flush()
        with self.block(f"if {marker} {'<=' if tagged else '<'} 0:"):
            self.line(f"{target} = None")
        with self.block("else:"):
            self.struct_into(inner, struct_type)
            self.flush()
            self.line(f"{target} = {inner}")

    def length(self, code: str, *, is_string: bool = False) -> str:
        """Read a length prefix, fused with the run before it: plain, or as a varint of one more."""
        length = self.name("n")
        self.run.append((length, "B" if self.flexible else code))
        self.flush()
        if self.flexible:
            read = "long_string_length" if is_string else "long_uvarint"
            self.line(f"if {length} > 127: {length}, pos = {read}(data, pos, {length})")
        return length

    def variable(self, target: str, kind: Scalar, nullable: bool, path: str) -> None:
        is_string = kind.__name__ == "string"
        length = self.length("h" if is_string else "i", is_string=is_string)
        with self.block(f"if {length}:" if self.flexible else f"if {length} >= 0:"):
            self.line(f"end = pos + {length}" + (" - 1" if self.flexible else ""))
            self.line(f"if end > size: length_error({path!r}, {length})")
            self.line(f"{target} = {self.slice(kind)}")
            self.line("pos = end")
        self.null(target, nullable, path)

    def slice(self, kind: Scalar) -> str:
        if kind.__name__ == "string":
            return 'str(data[pos:end], "utf-8")' if self.as_view else "data[pos:end].decode()"
        if kind.__name__ == "bytes" and self.as_view:
            return "bytes(data[pos:end])"
        return "data[pos:end]"

    def null(self, target: str, nullable: bool, path: str) -> None:
        with self.block("else:"):
            self.line(f"{target} = None" if nullable else f"null_error({path!r})")

    def array(self, target: str, field: Field, path: str) -> None:
        length = self.length("i")
        with self.block(f"if {length}:" if self.flexible else f"if {length} >= 0:"):
            if self.flexible:
                self.line(f"{length} -= 1")
            smallest = max(1, smallest_type_size(field.type, self.version, self.flexible))
            with self.block(f"if {length} * {smallest} > size - pos:"):
                self.line(f"length_error({path!r}, {length})")
            self.elements(target, field, length, path)
        self.null(target, self.is_nullable(field), path)

    def elements(self, target: str, field: Field, length: str, path: str) -> None:
        kind = field.type
        if isinstance(kind, Scalar) and kind.format is not None:
            self.fixed_elements(target, kind, length)
            return
        items, item = self.name("items"), self.name("o")
        self.line(f"{target} = {items} = []")
        with self.block(f"for _ in range({length}):"):
            if isinstance(kind, StructType):
                self.struct_into(item, kind)
            else:
                self.variable(item, kind, False, path)
            self.flush()
            self.line(f"{items}.append({item})")

    def fixed_elements(self, target: str, kind: Scalar, length: str) -> None:
        self.line(f"end = pos + {length} * {kind.size}")
        if kind.__name__ == "uuid":
            element = "bytes(data[at : at + 16])" if self.as_view else "data[at : at + 16]"
            self.line(f"{target} = [{element} for at in range(pos, end, 16)]")
        else:
            unpackers = f"unpackers_{kind.__name__}"
            if unpackers not in self.constants:
                self.constants[unpackers] = primitives.unpackers(kind.format or "")
            self.line(f"{target} = list({unpackers}[{length}](data, pos))")
        self.line("pos = end")

    def tagged_fields(self, target: str, tagged: list[Field]) -> None:
        """Read the tagged section, which is nearly always empty, and skip unknown tags."""
        count = self.name("n")
        self.run.append((count, "B"))
        self.flush()
        if not tagged:
            self.line(f"if {count}: pos = skip_tags(data, pos, {count})")
            return
        with self.block(f"if {count}:"):
            self.line(f"if {count} > 127: {count}, pos = long_uvarint(data, pos, {count})")
            with self.block(f"for _ in range({count}):"):
                tag, stop = self.name("tag"), self.name("stop")
                self.line(f"{tag}, pos = read_uvarint(data, pos)")
                self.line(f"{stop}, pos = read_uvarint(data, pos)")
                self.line(f"{stop} += pos")
                self.line(f"if {stop} > size: length_error('tag', {stop} - pos)")
                for field in tagged:
                    with self.block(f"{'if' if field is tagged[0] else 'elif'} {tag} == {field.tag}:"):
                        self.field(f"{target}.{field.name}", field)
                        self.flush()
                        self.line(f"if pos != {stop}: tag_error({field.name!r})")
                self.line(f"pos = {stop}")
