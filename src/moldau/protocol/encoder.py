"""Writes the source of an encoder: one function for one message in one version.

`Encoder` walks the declaration. Fields of fixed width are collected in `run` and become one `pack` together
with the length prefix of the next field; finished expressions are collected in `pieces` and appended to the
list `out` with one statement before each branch or loop. At the end `out` is joined; payloads of `LARGE`
bytes and more split it and remain separate parts.

A field that the version lacks must have its default, unless it is ignorable. Tagged fields with their default
are not written; if none remains, as usual, the section is one zero byte inside the preceding `pack`.
"""

from __future__ import annotations

from moldau.protocol import primitives
from moldau.protocol.fields import Field, Scalar, StructType
from moldau.protocol.schema import Message, shares_default
from moldau.protocol.writer import Writer

_HELPERS = ("uvarint", "string_uvarint", "absent_error", "several")


class Encoder(Writer):
    def __init__(self, message: type[Message], version: int) -> None:
        super().__init__(message, version)
        self.out = "out"
        self.run: list[tuple[str, str]] = []
        self.pieces: list[str] = []
        self.constants.update({name: getattr(primitives, name) for name in _HELPERS})

    def write(self) -> str:
        with self.block("def encode(o):"):
            self.line("parts = []")
            self.line("out = []")
            self.struct("o", self.message)
            self.flush()
            self.line("if out: parts.append(b''.join(out))")
            self.line("return parts")
        return self.source()

    def end_run(self) -> None:
        """Turn the fields in `run` into one expression."""
        run, self.run = self.run, []
        if run:
            self.pieces.append(self.packed(run))

    def packed(self, run: list[tuple[str, str]]) -> str:
        format = "".join(code for _, code in run)
        if not format.strip("x"):
            return repr(bytes(len(format)))
        arguments = ", ".join(expression for expression, code in run if code != "x")
        return f"{self.struct_method('pack', format)}({arguments})"

    def flush(self) -> None:
        """Append everything collected so far to `out`."""
        self.end_run()
        pieces, self.pieces = self.pieces, []
        if len(pieces) == 1:
            self.line(f"{self.out}.append({pieces[0]})")
        elif pieces:
            self.line(f"{self.out} += ({', '.join(pieces)})")

    def struct(self, source: str, struct_type: StructType) -> None:
        placed, tagged, absent = self.split_fields(struct_type.FIELDS)
        for field in absent:
            if not field.ignorable:
                self.absent(source, field)
        for field in placed:
            self.field(f"{source}.{field.name}", field)
        if self.flexible:
            self.tagged_fields(source, tagged)

    def absent(self, source: str, field: Field) -> None:
        path = f"{self.message.__name__}.{field.name}"
        source = f"{source}.{field.name}"
        condition = self.is_default(source, field)
        if shares_default(field):
            condition = f"{self.is_unsent(source, field)} or {condition}"
        self.line(f"if not ({condition}): absent_error({path!r}, {self.version})")

    def is_default(self, source: str, field: Field) -> str:
        if field.default is None:
            return f"{source} is None"
        return f"{source} == {self.default(field)}"

    def field(self, source: str, field: Field) -> None:
        nullable = self.is_nullable(field)
        if field.is_array:
            self.array(source, field, nullable)
        elif isinstance(field.type, StructType):
            self.nested(source, field.type, nullable, tagged=field.tagged.has(self.version))
        elif field.type.format is not None:
            self.run.append((source, field.type.format))
        elif field.type.__name__ == "string":
            self.string(source, nullable)
        else:
            self.payload(source, nullable)

    def nested(self, source: str, struct_type: StructType, nullable: bool, *, tagged: bool) -> None:
        """Write a struct; a nullable one has a prefix of 1, or -1 for null (0 in a tagged field)."""
        inner = self.name("o")
        self.line(f"{inner} = {source}")
        if not nullable:
            self.struct(inner, struct_type)
            return
        self.flush()
        null = b"\0" if tagged else b"\xff"
        with self.block(f"if {inner} is None:"):
            self.line(f"{self.out}.append({null!r})")
        with self.block("else:"):
            self.run.append(("1", "b"))
            self.struct(inner, struct_type)
            self.flush()

    def prefix(self, length: str, code: str, *, is_string: bool = False) -> None:
        """End the run with a length prefix. `length` is what is written: the size, or one more if compact."""
        if not self.flexible:
            self.run.append((length, code))
            self.end_run()
            return
        run, self.run = self.run, []
        short = self.packed([*run, (length, "B")])
        long = f"{'string_uvarint' if is_string else 'uvarint'}({length})"
        if run:
            long = f"{self.packed(run)} + {long}"
        self.pieces.append(f"({short} if {length} < 128 else {long})")

    def string(self, source: str, nullable: bool) -> None:
        text, length = self.name("s"), self.name("n")
        more = " + 1" if self.flexible else ""
        if not nullable:
            self.line(f"{text} = {source}.encode()")
            self.line(f"{length} = len({text}){more}")
        else:
            self.line(f"{text} = {source}")
            with self.block(f"if {text} is None:"):
                self.line(f"{text} = b''")
                self.line(f"{length} = {0 if self.flexible else -1}")
            with self.block("else:"):
                self.line(f"{text} = {text}.encode()")
                self.line(f"{length} = len({text}){more}")
        self.prefix(length, "h", is_string=True)
        self.pieces.append(text)

    def payload(self, source: str, nullable: bool) -> None:
        """Write bytes or records: small ones are copied, large ones become separate parts."""
        payload, length = self.name("p"), self.name("n")
        self.line(f"{payload} = {source}")
        size = f"(sum(map(len, {payload})) if isinstance({payload}, several) else len({payload}))"
        size += " + 1" if self.flexible else ""
        if nullable:
            size = f"{0 if self.flexible else -1} if {payload} is None else {size}"
        self.line(f"{length} = {size}")
        self.prefix(length, "i")
        self.flush()
        if not nullable:
            self.present_payload(payload, length)
            return
        with self.block(f"if {payload} is not None:"):
            self.present_payload(payload, length)

    def present_payload(self, payload: str, length: str) -> None:
        parts = f"{payload} if isinstance({payload}, several) else ({payload},)"
        if self.out != "out":
            self.line(f"{self.out} += {parts}")
            return
        with self.block(f"if {length} > {primitives.LARGE}:"):
            self.line("parts.append(b''.join(out))")
            self.line("out.clear()")
            self.line(f"parts += {parts}")
        with self.block("else:"):
            self.line(f"out += {parts}")

    def null(self) -> str:
        return repr(b"\0" if self.flexible else b"\xff\xff\xff\xff")

    def array(self, source: str, field: Field, nullable: bool) -> None:
        items = self.name("a")
        self.line(f"{items} = {source}")
        kind = field.type
        if isinstance(kind, Scalar) and kind.format is not None:
            self.fixed_array(items, field, kind, nullable)
            return
        length, item = self.name("n"), self.name("o")
        if nullable:
            with self.block(f"if {items} is None:"):
                self.line(f"{items} = ()")
                self.line(f"{length} = {0 if self.flexible else -1}")
            with self.block("else:"):
                self.line(f"{length} = len({items})" + (" + 1" if self.flexible else ""))
        else:
            self.line(f"{length} = len({items})" + (" + 1" if self.flexible else ""))
        self.prefix(length, "i")
        self.flush()
        with self.block(f"for {item} in {items}:"):
            if isinstance(kind, StructType):
                self.struct(item, kind)
            elif kind.__name__ == "string":
                self.string(item, False)
            else:
                self.payload(item, False)
            self.end_run()
            if not self.pieces:
                self.line("pass")
            self.flush()

    def fixed_array(self, items: str, field: Field, kind: Scalar, nullable: bool) -> None:
        self.end_run()
        packed = self.packed_array(items, field, kind)
        if not nullable:
            self.pieces.append(packed)
            return
        result = self.name("p")
        self.line(f"{result} = {self.null()} if {items} is None else {packed}")
        self.pieces.append(result)

    def packed_array(self, items: str, field: Field, kind: Scalar) -> str:
        more = " + 1" if self.flexible else ""
        if kind.__name__ == "uuid":
            pack = self.constant(
                f"pack_uuids_{field.name}", primitives.uuid_packer(field.name, self.flexible)
            )
            return f"{pack}({items})"
        packers = f"packers_{kind.__name__}"
        if packers not in self.constants:
            self.constants[packers] = primitives.packers(kind.format or "", self.flexible)
        return f"{packers}[len({items})](len({items}){more}, *{items})"

    def tagged_fields(self, source: str, tagged: list[Field]) -> None:
        if not tagged:
            self.run.append(("", "x"))
            return
        self.end_run()
        section = self.name("t")
        unsent = " and ".join(self.is_unsent(f"{source}.{field.name}", field) for field in tagged)
        with self.block(f"if {unsent}:"):
            self.line(f"{section} = b'\\0'")
        waiting, self.pieces = self.pieces, []
        outer, self.out = self.out, self.name("out")
        with self.block("else:"):
            tags = self.name("tags")
            self.line(f"{tags} = []")
            for field in tagged:
                with self.block(f"if not ({self.is_default(f'{source}.{field.name}', field)}):"):
                    self.line(f"{self.out} = []")
                    self.field(f"{source}.{field.name}", field)
                    self.flush()
                    self.line(f"{self.out} = b''.join({self.out})")
                    tag = primitives.uvarint(field.tag or 0)
                    self.line(f"{tags}.append({tag!r} + uvarint(len({self.out})) + {self.out})")
            self.line(f"{section} = uvarint(len({tags})) + b''.join({tags})")
        self.out = outer
        self.pieces = [*waiting, section]

    def is_unsent(self, source: str, field: Field) -> str:
        """A cheap test for the usual case; if it fails, `is_default` decides."""
        if shares_default(field):
            return f"{source} is {self.default(field)}"
        return self.is_default(source, field)
