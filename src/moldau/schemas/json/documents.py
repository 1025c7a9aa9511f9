"""The documents a schema consists of, and where a `$ref` leads.

A document is found by the name of its reference, by its `$id`, or it is the metaschema of a draft. Nothing is
read from the network: another URI is an error.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

from moldau.schemas.json import text


class SchemaError(Exception):
    """The reason why a document is not a valid schema."""


class Draft(NamedTuple):
    """A version of the specification."""

    name: str
    id_keyword: str
    #: 2019-09 and 2020-12, where `$ref` has siblings and keywords are vocabularies.
    modern: bool


DRAFT_4 = Draft("draft-04", "id", False)
DRAFT_6 = Draft("draft-06", "$id", False)
DRAFT_7 = Draft("draft-07", "$id", False)
DRAFT_2019_09 = Draft("draft/2019-09", "$id", True)
DRAFT_2020_12 = Draft("draft/2020-12", "$id", True)

_DRAFTS = {f"json-schema.org/{draft.name}/schema": draft for draft in (DRAFT_4, DRAFT_6, DRAFT_7)}
_DRAFTS |= {f"json-schema.org/{draft.name}/schema": draft for draft in (DRAFT_2019_09, DRAFT_2020_12)}
_DRAFTS["json-schema.org/schema"] = DRAFT_4

#: Keywords whose values are data, not schemas.
_DATA = frozenset({"enum", "const", "default", "examples"})


def draft_of(document: Any) -> Draft:
    """Return the draft that `$schema` names; draft 7 if it is missing or unknown."""
    uri = document.get("$schema") if isinstance(document, dict) else None
    if uri is None:
        return DRAFT_7
    if not isinstance(uri, str):
        raise SchemaError("$schema must be a string")
    scheme, separator, rest = uri.removesuffix("#").partition("://")
    known = _DRAFTS.get(rest) if separator and scheme in ("http", "https") else None
    return known or DRAFT_7


class Location(NamedTuple):
    """A schema inside a document, and the URI its references are relative to."""

    json: Any
    base: str


class Documents:
    """The root document and the documents it may refer to."""

    def __init__(self, root: Any, references: Mapping[str, str], draft: Draft) -> None:
        """`references` maps names to texts."""
        self._draft = draft
        self._references = references
        self._loaded: dict[str, Any] = {}
        self._by_uri: dict[str, Location] = {}
        self._indexed: set[int] = set()
        self._root_id = _string(root, draft.id_keyword)
        self.root = self._add(_with_defs(root), "")
        self._ids_known = False

    def resolve(self, ref: str, base: str) -> Location:
        """Return what a `$ref` refers to; raise `SchemaError` if it is unknown."""
        for uri in dict.fromkeys((join(base, ref), ref)):
            if uri in self._by_uri:
                return self._by_uri[uri]
            document_uri, _, fragment = uri.partition("#")
            document = self._document(document_uri)
            if document is None:
                continue
            if uri in self._by_uri:
                return self._by_uri[uri]
            if not fragment:
                return document
            found = self._pointer(document, fragment)
            if found is not None:
                return found
        raise SchemaError(f"Unresolvable $ref '{ref}': no reference of this name, and nothing is fetched")

    def child(self, json: Any, base: str) -> Location:
        """Return a schema nested in another one with the base URI that its own `$id` makes."""
        identifier = _string(json, self._draft.id_keyword)
        return Location(json, base if identifier is None else join(base, identifier))

    def _document(self, uri: str) -> Location | None:
        if uri in self._by_uri:
            return self._by_uri[uri]
        if uri in ("", self.root.base.partition("#")[0]):
            return self.root
        for name in self._references:
            if uri in (name, "./" + name, join(self._root_id or "", name), join(self.root.base, name)):
                return self._load(name, uri)
        return self._metaschema(uri) or self._by_id(uri)

    def _by_id(self, uri: str) -> Location | None:
        """Load the references, in case one of them has this `$id`."""
        if not self._ids_known:
            self._ids_known = True
            for name in self._references:
                self._load(name, join(self._root_id or "", name))
        return self._by_uri.get(uri)

    def _load(self, name: str, uri: str) -> Location:
        if name not in self._loaded:
            document = text.read(self._references[name])
            self._loaded[name] = _with_defs(document)
        return self._add(self._loaded[name], uri)

    def _metaschema(self, uri: str) -> Location | None:
        scheme, _, rest = uri.partition("://")
        if scheme not in ("http", "https") or not rest.startswith("json-schema.org/"):
            return None
        from jsonschema_specifications import REGISTRY  # type: ignore[import-untyped]

        candidates = (f"{prefix}{rest}{suffix}" for prefix in ("http://", "https://") for suffix in ("", "#"))
        for candidate in candidates:
            resource = REGISTRY.get(candidate)
            if resource is not None:
                return self._add(resource.contents, uri)
        return None

    def _add(self, document: Any, uri: str) -> Location:
        location = self.child(document, uri)
        self._by_uri.setdefault(uri, location)
        if id(document) not in self._indexed:
            self._indexed.add(id(document))
            for inner, inner_location in self._identified(document, uri):
                self._by_uri.setdefault(inner.removesuffix("#"), inner_location)
        return location

    def _identified(self, document: Any, uri: str) -> Iterator[tuple[str, Location]]:
        """Yield the subschemas that have a URI of their own: `$id`, `$anchor`, `$dynamicAnchor`."""
        pending = [(document, uri)]
        while pending:
            json, base = pending.pop()
            if isinstance(json, list):
                pending.extend((element, base) for element in json)
            elif isinstance(json, dict):
                location = self.child(json, base)
                if location.base != base:
                    yield location.base, location
                for keyword in ("$anchor", "$dynamicAnchor"):
                    anchor = _string(json, keyword)
                    if anchor is not None:
                        yield f"{location.base.partition('#')[0]}#{anchor}", location
                pending.extend((value, location.base) for key, value in json.items() if key not in _DATA)

    def _pointer(self, document: Location, fragment: str) -> Location | None:
        if self._draft.modern and not fragment.startswith("/"):
            return None
        location = document
        # Up to draft 7, text before the first slash is ignored: `#unknown` is the whole document.
        for segment in fragment.split("/")[1:]:
            key = unquote(segment).replace("~1", "/").replace("~0", "~")
            json = location.json
            if isinstance(json, dict) and key in json:
                location = self.child(json[key], location.base)
            elif isinstance(json, list) and key.isdecimal() and len(key) < 10 and int(key) < len(json):
                location = self.child(json[int(key)], location.base)
            else:
                return None
        return location


def _with_defs(document: Any) -> Any:
    """Return the document with the entries of `definitions` in `$defs`, too: a `$ref` may name either."""
    definitions = document.get("definitions") if isinstance(document, dict) else None
    if not isinstance(definitions, dict) or not definitions:
        return document
    defs = document.get("$defs", {})
    return {**document, "$defs": {**definitions, **defs}} if isinstance(defs, dict) else document


def _string(json: Any, keyword: str) -> str | None:
    value = json.get(keyword) if isinstance(json, dict) else None
    return value if isinstance(value, str) else None


def join(base: str, ref: str) -> str:
    """Resolve a URI reference against a base, whatever its scheme."""
    if not base or urlsplit_scheme(ref):
        return ref
    if ref.startswith("#"):
        return urldefrag(base).url + ref
    joined = urljoin(base, ref)
    # urljoin does not know schemes like urn: or mem:.
    return joined if joined != ref or not urlsplit_scheme(base) else base.rpartition("/")[0] + "/" + ref


def urlsplit_scheme(uri: str) -> str:
    """Return the scheme of a URI; "" for a relative or malformed one."""
    try:
        return urlsplit(uri).scheme
    except ValueError as error:
        raise SchemaError(f"'{uri}' is not a URI") from error
