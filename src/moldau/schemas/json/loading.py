"""What the loaders of all drafts share: an object is loaded once, references are resolved afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from moldau.schemas.json import text
from moldau.schemas.json.documents import Documents, Location, SchemaError
from moldau.schemas.json.model import Anything, Nothing, Reference, Schema, Target
from moldau.schemas.json.patterns import Pattern, PatternError
from moldau.schemas.trampoline import Recursion, run

#: Loads the object at a location, children by `Loading.child`.
LoadObject = Callable[["Loading", Location], Recursion[Schema]]


class Loading:
    """The loading of one schema with all it refers to."""

    def __init__(self, documents: Documents, load_object: LoadObject) -> None:
        self._documents = documents
        self._load_object = load_object
        self._loaded: dict[int, Schema] = {}
        self._targets: dict[int, Target] = {}
        self._pending: list[tuple[Location, Target]] = []

    def load(self) -> Schema:
        """Load the root and everything it refers to; raise `SchemaError` if it is not a valid schema."""
        root = run(self.at(self._documents.root))
        # A target is another object than the same schema inside the root: a recursive schema is compared
        # once at its place and once as a target, and has the findings of both.
        self._loaded = {}
        while self._pending:
            location, target = self._pending.pop()
            target.schema = run(self.at(location))
        return root

    def child(self, json: Any, base: str) -> Recursion[Schema]:
        """Load a nested schema."""
        return self.at(self._documents.child(json, base))

    def children(self, jsons: Iterable[Any], base: str) -> Recursion[list[Schema]]:
        """Load several nested schemas."""
        schemas: list[Schema] = []
        for json in jsons:
            schemas.append((yield self.child(json, base)))  # noqa: PERF401
        return schemas

    def at(self, location: Location) -> Recursion[Schema]:
        """Load the schema at a location; a schema that is known is returned at once."""
        json = location.json
        if isinstance(json, bool):
            return Anything() if json else Nothing()  # type: ignore[return-value]
        if not isinstance(json, dict):
            raise SchemaError(f"A schema must be an object or a boolean, not {text.write(json)[:100]}")
        known = self._loaded.get(id(json))
        return self._load(location) if known is None else known  # type: ignore[return-value]

    def _load(self, location: Location) -> Recursion[Schema]:
        schema: Schema = yield self._load_object(self, location)
        self._loaded[id(location.json)] = schema
        return schema

    def reference(self, ref: Any, base: str) -> Reference:
        """Return a reference; its target is loaded after the schema that contains it."""
        require(isinstance(ref, str), "$ref must be a string")
        location = self._documents.resolve(ref, base)
        # Booleans are shared objects: each gets a target of its own.
        key = id(location.json) if isinstance(location.json, dict) else -len(self._pending) - 1
        target = self._targets.get(key) if key > 0 else None
        if target is None:
            target = Target()
            self._pending.append((location, target))
            if key > 0:
                self._targets[key] = target
        return Reference(ref=ref, target=target)


def require(condition: object, reason: str) -> None:
    """Raise `SchemaError` unless a condition holds."""
    if not condition:
        raise SchemaError(reason)


def of_type(json: Mapping[str, Any], keyword: str, *types: type) -> Any:
    """Return the value of a keyword, None if it is missing; raise if it has another type."""
    if keyword not in json:
        return None
    value = json[keyword]
    if type(value) not in types:
        names = " or ".join(expected.__name__ for expected in types)
        raise SchemaError(f"{keyword} must be {names}, not {text.write(value)[:100]}")
    return value


def strings(values: Any, keyword: str) -> list[str]:
    """Return a list of strings; raise if it is not one."""
    require(
        isinstance(values, list) and all(isinstance(value, str) for value in values),
        f"{keyword} needs strings",
    )
    found: list[str] = values
    return found


def pattern(expression: str) -> Pattern:
    """Compile a regular expression."""
    try:
        return Pattern(expression)
    except PatternError as error:
        raise SchemaError(f"'{expression[:100]}' is not a regular expression: {error}") from error
