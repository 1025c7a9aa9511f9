"""Is a schema registered under one of several subjects? Asked of the schema registry, without a cache.

- A record names a schema by its id or by its GUID. An id belongs to a context: that of the registry's URL
  (`http://registry/contexts/.ctx`), otherwise the default context. A GUID is the same in all contexts.
- A subject may be an alias of another one (the setting `alias`), possibly of another context. A schema that
  is not registered under the subject itself may be registered under the subject that it is an alias of.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Container, Mapping
from typing import Final

from moldau.client.registry.client import AsyncRegistryClient
from moldau.client.registry.types import RegistryError, Schema, SubjectVersion
from moldau.storage.log.schema_ids import SchemaKey

_DEFAULT_CONTEXT: Final = "."
_SCHEMA_NOT_FOUND: Final = 40403
_CONFIG_NOT_FOUND: Final = 40408
_SUBJECT_NOT_FOUND: Final = 40401
#: A Protobuf schema may have many message types, each a subject; aliases of further ones are not read.
_MAX_ALIASES: Final = 10


class UnknownSchema(Exception):
    """The registry has no schema with this id or GUID."""


class Registrations:
    def __init__(self, client: AsyncRegistryClient) -> None:
        self._client = client
        found = re.search(r"/contexts/:?([^/:]+):?$", client.settings.urls[0])
        context = _DEFAULT_CONTEXT if found is None else f".{found[1].removeprefix('.')}"
        #: The context of the URL, and how it begins the names of its subjects.
        self._context, self._prefix = context, _prefix(context)

    async def schema(self, key: SchemaKey) -> Schema:
        try:
            if isinstance(key, int):
                return await self._client.schema_by_id(key)
            return await self._client.schema_by_guid(guid(key))
        except RegistryError as error:
            if error.error_code == _SCHEMA_NOT_FOUND:
                raise UnknownSchema from error
            raise

    async def has(self, key: SchemaKey, subjects: tuple[str, ...]) -> bool:
        """Return whether one of the subjects, or the one that it is an alias of, has the schema."""
        ids = None if isinstance(key, int) else await self._ids(key)
        names = {self._prefix + subject for subject in subjects}
        found = await self._is_listed(key, ids, self._context, names)
        for subject in subjects[:_MAX_ALIASES]:
            if found:
                break
            alias = await self._alias(subject)
            if alias is not None:
                listed = await self._is_listed(key, ids, _context_of(alias), {alias})
                found = found if listed is None else listed
        if found is None and ids is None:
            raise UnknownSchema
        return bool(found)

    async def _ids(self, key: bytes) -> dict[str, int]:
        """Return the ids of a schema by their contexts."""
        found = {one.context: one.id for one in await self._client.ids_of_guid(guid(key))}
        if not found:
            raise UnknownSchema
        return found

    async def _is_listed(
        self, key: SchemaKey, ids: Mapping[str, int] | None, context: str, subjects: Container[str]
    ) -> bool | None:
        """Return whether a subject has the schema in a context, or None if the context does not have it.

        A registry lists the versions of an id in pages.
        """
        id = key if isinstance(key, int) else (ids or {}).get(context)
        if id is None:
            return None
        within = None if context == self._context else _prefix(context) or ":.:"
        seen: set[SubjectVersion] = set()
        while True:
            try:
                page = await self._client.versions_of_id(id, offset=len(seen), subject=within)
            except RegistryError as error:
                if error.error_code == _SCHEMA_NOT_FOUND:
                    return None
                raise
            if any(version.subject in subjects for version in page):
                return True
            # Older registries have no pages and return the whole list again.
            if seen.issuperset(page):
                return False
            seen.update(page)

    async def _alias(self, subject: str) -> str | None:
        """Return the full name of the subject that a subject is an alias of."""
        try:
            config = await self._client.config(subject, default_to_global=False)
        except RegistryError as error:
            if error.error_code in (_CONFIG_NOT_FOUND, _SUBJECT_NOT_FOUND):
                return None
            raise
        alias = config.get("alias")
        if not isinstance(alias, str) or not alias:
            return None
        return alias if alias.startswith(":.") else self._prefix + alias


def guid(key: bytes) -> str:
    return str(uuid.UUID(bytes=key))


def _prefix(context: str) -> str:
    return "" if context == _DEFAULT_CONTEXT else f":{context}:"


def _context_of(subject: str) -> str:
    return subject[1:].partition(":")[0] if subject.startswith(":.") else _DEFAULT_CONTEXT
