"""ACLs of the registry: which principal may do what with which subjects.

Rules are lines of a file (`schema.registry.acl.file`), or separated by semicolons in
`schema.registry.acl.rules`:

    # allow or deny   principal     operations                        subjects
    allow             User:alice    SUBJECT_READ,SUBJECT_WRITE        orders-*
    allow             User:*        SUBJECT_READ,GLOBAL_READ          *
    deny              User:bob      *                                 :.secret:*

A subject is literal, or a prefix if it ends with `*`; subjects of other contexts are written with their
context. Rules that name `GLOBAL_` operations apply whatever their subjects are; the operations `*` include
them only if the subjects are `*`, too. A matching deny rule takes precedence over all allow rules; without a
matching allow rule the operation is denied. The principals of `schema.registry.super.users`, separated by
semicolons, may do everything. Without rules all operations are allowed.

A `GLOBAL_` operation does not reveal subjects that are denied (`Access`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from enum import StrEnum
from functools import lru_cache
from typing import Final, NamedTuple

from moldau.config.definition import ConfigError
from moldau.http.errors import ApiError
from moldau.registry.state.names import relative_to
from moldau.schemas.schema import Reference
from moldau.security.principal import ANONYMOUS, KafkaPrincipal

_FILE: Final = "schema.registry.acl.file"
_RULES: Final = "schema.registry.acl.rules"
_SUPER_USERS: Final = "schema.registry.super.users"
_DENIED: Final = 40301
_MAX_CACHED: Final = 10_000


class Operation(StrEnum):
    """Operations on one subject, and on the registry as a whole."""

    SUBJECT_READ = "SUBJECT_READ"
    SUBJECT_WRITE = "SUBJECT_WRITE"
    SUBJECT_DELETE = "SUBJECT_DELETE"
    SUBJECT_COMPATIBILITY_READ = "SUBJECT_COMPATIBILITY_READ"
    SUBJECT_COMPATIBILITY_WRITE = "SUBJECT_COMPATIBILITY_WRITE"
    SUBJECT_MODE_READ = "SUBJECT_MODE_READ"
    SUBJECT_MODE_WRITE = "SUBJECT_MODE_WRITE"
    GLOBAL_READ = "GLOBAL_READ"
    GLOBAL_COMPATIBILITY_READ = "GLOBAL_COMPATIBILITY_READ"
    GLOBAL_COMPATIBILITY_WRITE = "GLOBAL_COMPATIBILITY_WRITE"
    GLOBAL_MODE_READ = "GLOBAL_MODE_READ"
    GLOBAL_MODE_WRITE = "GLOBAL_MODE_WRITE"


class _Rule(NamedTuple):
    allows: bool
    principal: str
    pattern: str

    def matches(self, principal: str, subject: str | None) -> bool:
        if self.principal not in (principal, f"{principal.partition(':')[0]}:*"):
            return False
        if subject is None:
            return True
        if self.pattern.endswith("*"):
            return subject.startswith(self.pattern[:-1])
        return subject == self.pattern


class Authorizer:
    def __init__(self, rules: Mapping[Operation, Iterable[_Rule]], super_users: frozenset[str]) -> None:
        self._rules = {operation: tuple(found) for operation, found in rules.items()}
        self._super_users = super_users
        self._decide = lru_cache(_MAX_CACHED)(self._decided)

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> Authorizer | None:
        """Read the rules; None if there are none, `ConfigError` if one is invalid."""
        lines = properties.get(_RULES, "").split(";")
        if path := properties.get(_FILE, "").strip():
            lines += _lines(path)
        elif _RULES not in properties:
            return None
        rules: dict[Operation, list[_Rule]] = defaultdict(list)
        for number, line in enumerate(lines, 1):
            text = line.partition("#")[0].strip()
            if text:
                operations, rule = _parse(text, f"rule {number} of the ACLs")
                for operation in operations:
                    rules[operation].append(rule)
        users = properties.get(_SUPER_USERS, "").split(";")
        return cls(rules, frozenset(filter(None, map(str.strip, users))))

    def allows(self, principal: KafkaPrincipal, operation: Operation, subject: str | None = None) -> bool:
        """Return whether an operation is allowed; `subject` is None for global operations."""
        return self._decide(str(principal), operation, subject)

    def authorize(self, principal: KafkaPrincipal, operation: Operation, subject: str | None = None) -> None:
        """Raise an `ApiError` 403 if an operation is denied."""
        if not self._decide(str(principal), operation, subject):
            raise denied(operation, subject)

    def denies(self, principal: KafkaPrincipal, operation: Operation, subject: str) -> bool:
        """Return whether a deny rule matches; unlike an operation that no rule allows."""
        name = str(principal)
        return name not in self._super_users and not all(self._matching(name, operation, subject))

    def _decided(self, principal: str, operation: Operation, subject: str | None) -> bool:
        if principal in self._super_users:
            return True
        matching = self._matching(principal, operation, subject)
        return bool(matching) and all(matching)

    def _matching(self, principal: str, operation: Operation, subject: str | None) -> list[bool]:
        wanted = None if operation.startswith("GLOBAL_") else subject
        return [rule.allows for rule in self._rules.get(operation, ()) if rule.matches(principal, wanted)]


class Access:
    """What a principal may do with the subjects that a decision finds; everything without an authorizer.

    Lists contain only subjects that may be read. What only denied subjects have is refused although a request
    does not name one of them.
    """

    def __init__(self, authorizer: Authorizer | None = None, principal: KafkaPrincipal = ANONYMOUS) -> None:
        self._authorizer = authorizer
        self._principal = principal

    def require(self, operation: Operation, subject: str | None) -> None:
        """Raise an `ApiError` 403 if an operation is not allowed."""
        if self._authorizer is not None:
            self._authorizer.authorize(self._principal, operation, subject)

    def may_read(self, subject: str) -> bool:
        authorizer = self._authorizer
        return authorizer is None or authorizer.allows(self._principal, Operation.SUBJECT_READ, subject)

    def is_denied(self, subject: str) -> bool:
        """Return whether a rule denies reading a subject, or all subjects of the context of a prefix."""
        authorizer = self._authorizer
        return authorizer is not None and authorizer.denies(self._principal, Operation.SUBJECT_READ, subject)

    def require_references(self, subject: str, references: Iterable[Reference]) -> None:
        """Raise an `ApiError` 403 if a schema refers to a denied subject, which it would contain."""
        for reference in references:
            target = relative_to(subject, reference.subject)
            if self.is_denied(target):
                raise denied(Operation.SUBJECT_READ, target)


def denied(operation: Operation, subject: str | None = None) -> ApiError:
    on = "" if subject is None else f" on Subject: {subject}"
    return ApiError(403, _DENIED, f"User is denied operation {operation}{on}")


def _lines(path: str) -> list[str]:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ConfigError(f"{_FILE}={path} cannot be read: {reason}.") from None


def _parse(text: str, where: str) -> tuple[list[Operation], _Rule]:
    words = text.split()
    if len(words) != 4 or words[0].lower() not in ("allow", "deny"):
        raise ConfigError(
            f"{where}: '{text}' is not of the form: allow|deny PRINCIPAL OPERATION,… SUBJECT (or PREFIX*)."
        )
    permission, principal, names, pattern = words
    if ":" not in principal:
        raise ConfigError(f"{where}: {principal} is not a principal such as User:alice.")
    if names.lower() in ("*", "all"):
        operations = [each for each in Operation if pattern == "*" or not each.startswith("GLOBAL_")]
    else:
        operations = [_operation(name, where) for name in names.split(",")]
    return operations, _Rule(permission.lower() == "allow", principal, pattern)


def _operation(name: str, where: str) -> Operation:
    try:
        return Operation(name.strip().upper())
    except ValueError:
        raise ConfigError(f"{where}: {name} is not an operation; use {', '.join(Operation)} or *.") from None
