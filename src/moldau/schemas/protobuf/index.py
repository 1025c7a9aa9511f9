"""The types and extension fields that a file can name, and how names are resolved.

All files given as references count, imported or not, as do the built-in files: Confluent's registry resolves
names this way. Imports decide only when a schema is linked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from moldau.schemas.protobuf import builtin
from moldau.schemas.protobuf.elements import Extend, Field, Message, ProtoFile, Type


class TypeEntry(NamedTuple):
    """A message or enum by its full name."""

    full_name: str
    package: str
    element: Type
    #: Declared in the schema itself, not in a reference.
    is_local: bool


class Scope(NamedTuple):
    """Where a name is used: the package and the names of the enclosing types."""

    package: str
    types: tuple[str, ...] = ()

    def inner(self, name: str) -> Scope:
        return Scope(self.package, (*self.types, name))

    def candidates(self, name: str) -> Iterator[str]:
        """Yield the full names that a name may stand for, innermost first."""
        if name.startswith("."):
            yield name[1:]
            return
        prefix = ".".join((self.package, *self.types) if self.package else self.types)
        while prefix:
            yield f"{prefix}.{name}"
            prefix = prefix.rpartition(".")[0]
        yield name


class TypeIndex:
    """The types and extension fields of a file and of its references, by full name."""

    def __init__(
        self, file: ProtoFile, references: Mapping[str, ProtoFile], *, with_builtin: bool = True
    ) -> None:
        """Without built-in files, only those among the references count."""
        self._with_builtin = with_builtin
        self.package = file.package or ""
        self._types: dict[str, TypeEntry] = {}
        self._extensions: dict[str, Field] = {}
        for reference in references.values():
            self._add_file(reference, is_local=False)
        self._add_file(file, is_local=True)

    def _add_file(self, file: ProtoFile, is_local: bool) -> None:
        scope = Scope(file.package or "")
        self._add_extends(file.extends, scope)
        for element in file.types:
            self._add_type(element, scope, is_local)

    def _add_type(self, element: Type, outer: Scope, is_local: bool) -> None:
        scope = outer.inner(element.name)
        full_name = ".".join(filter(None, (scope.package, *scope.types)))
        self._types[full_name] = TypeEntry(full_name, scope.package, element, is_local)
        if isinstance(element, Message):
            self._add_extends(element.extends, scope)
            for nested in element.types:
                self._add_type(nested, scope, is_local)

    def _add_extends(self, extends: tuple[Extend, ...], scope: Scope) -> None:
        prefix = ".".join(filter(None, (scope.package, *scope.types)))
        for extend in extends:
            for field in extend.fields:
                self._extensions[f"{prefix}.{field.name}" if prefix else field.name] = field

    def type(self, name: str, scope: Scope) -> TypeEntry | None:
        """Return the type that a name stands for in a scope."""
        for candidate in scope.candidates(name):
            entry = self._types.get(candidate)
            if entry is None and self._with_builtin and builtin.has_prefix(candidate):
                entry = builtin_index().local_type(candidate)
            if entry is not None:
                return entry
        return None

    def local_type(self, full_name: str) -> TypeEntry | None:
        return self._types.get(full_name)

    def extension(self, name: str, scope: Scope) -> tuple[str, Field] | None:
        """Return the full name and declaration of the extension field that a name stands for in a scope."""
        for candidate in scope.candidates(name):
            field = self._extensions.get(candidate)
            if field is None and self._with_builtin and builtin.has_prefix(candidate):
                field = builtin_index().local_extension(candidate)
            if field is not None:
                return candidate, field
        return None

    def local_extension(self, full_name: str) -> Field | None:
        return self._extensions.get(full_name)


_BUILTIN: list[TypeIndex] = []


def builtin_index() -> TypeIndex:
    """Return the index of the built-in files, which are read with their first use."""
    if not _BUILTIN:
        _BUILTIN.append(TypeIndex(ProtoFile(), builtin.files()))
    return _BUILTIN[0]
