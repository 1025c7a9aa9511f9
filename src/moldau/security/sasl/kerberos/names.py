"""Kerberos names and the rules that shorten them (`sasl.kerberos.principal.to.local.rules`).

Rules are tried in order. `DEFAULT` takes the first component of a name of the default realm.
`RULE:[n:format](pattern)s/from/to/g/L` applies to names of `n` components: `format` is filled with them
(`$0` is the realm), must match `pattern` as a whole, and is changed by the substitution; `L` and `U` change
its case. Patterns and replacements are Java's.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from moldau.config.definition import ConfigError

_CONFIG = "sasl.kerberos.principal.to.local.rules"
_RULE = re.compile(
    r"RULE:\[(?P<components>\d*):(?P<format>[^\]]*)\](?:\((?P<pattern>[^)]*)\))?"
    r"(?:s/(?P<source>[^/]*)/(?P<target>[^/]*)/(?P<repeat>g)?)?/?(?P<case>[LU])?"
)
_NAME = re.compile(r"([^/@]*)(?:/([^/@]*))?@([^/@]*)")
_PARAMETER = re.compile(r"\$(\d*)")
_REPLACEMENT = re.compile(r"\\(.)|\$(\d)", re.DOTALL)
_JAVA_GROUP = re.compile(r"\(\?<(?=[A-Za-z])")
_NOT_SIMPLE = re.compile(r"[/@]")


class NoMatchingRule(Exception):
    """No rule gives a name its short form."""


@dataclass(frozen=True, slots=True)
class KerberosName:
    """`service/host@realm`, or `user@realm`."""

    service: str
    host: str | None
    realm: str | None

    @classmethod
    def parse(cls, text: str) -> KerberosName:
        match = _NAME.fullmatch(text)
        if match is not None:
            return cls(match[1], match[2], match[3])
        if "@" in text:
            raise NoMatchingRule(f"malformed Kerberos name: {text}")
        return cls(text, None, None)

    @property
    def parameters(self) -> tuple[str, ...]:
        """The realm, followed by the components."""
        components = (self.service,) if self.host is None else (self.service, self.host)
        return (self.realm or "", *components)


@dataclass(frozen=True, slots=True)
class _Rule:
    text: str
    components: int
    format: str
    pattern: re.Pattern[str] | None
    source: re.Pattern[str] | None
    target: str
    repeat: bool
    case: str

    def apply(self, parameters: Sequence[str]) -> str | None:
        if len(parameters) - 1 != self.components:
            return None
        name = _PARAMETER.sub(lambda found: self._parameter(found[1], parameters), self.format)
        if self.pattern is not None and self.pattern.fullmatch(name) is None:
            return None
        if self.source is not None:
            name = self.source.sub(self._expand, name, count=0 if self.repeat else 1)
        if _NOT_SIMPLE.search(name):
            raise NoMatchingRule(f"the name {name} is not simple after the rule {self.text}")
        if self.case:
            return name.lower() if self.case == "L" else name.upper()
        return name

    def _parameter(self, digits: str, parameters: Sequence[str]) -> str:
        if not digits or int(digits) >= len(parameters):
            raise NoMatchingRule(f"${digits} of the rule {self.text} is not a component of the name")
        return parameters[int(digits)]

    def _expand(self, match: re.Match[str]) -> str:
        def part(found: re.Match[str]) -> str:
            return found[1] if found[1] is not None else match[int(found[2])] or ""

        return _REPLACEMENT.sub(part, self.target)


class ShortNames:
    """Turns the name of a client's ticket into the name of its principal."""

    def __init__(self, rules: Sequence[str], default_realm: str) -> None:
        """`ConfigError` if a rule is invalid."""
        self._default_realm = default_realm
        #: None: DEFAULT.
        self._rules = [None if text == "DEFAULT" else _parse(text) for text in rules]

    def short_name(self, text: str) -> str:
        """Return the short form of a name; `NoMatchingRule` if it has none."""
        name = KerberosName.parse(text)
        if name.host is None and name.realm is None:
            return name.service
        for rule in self._rules:
            short = self._default(name) if rule is None else rule.apply(name.parameters)
            if short is not None:
                return short
        raise NoMatchingRule(f"no rule of {_CONFIG} applies to {text}")

    def _default(self, name: KerberosName) -> str | None:
        return name.service if name.realm == self._default_realm else None


def _parse(text: str) -> _Rule:
    match = _RULE.fullmatch(text)
    if match is None or not match["components"]:
        raise ConfigError(f"{_CONFIG}: invalid rule: {text}")
    return _Rule(
        text,
        int(match["components"]),
        match["format"],
        _compile(text, match["pattern"]),
        _compile(text, match["source"]),
        match["target"] or "",
        match["repeat"] is not None,
        match["case"] or "",
    )


def _compile(rule: str, pattern: str | None) -> re.Pattern[str] | None:
    if pattern is None:
        return None
    try:
        return re.compile(_JAVA_GROUP.sub("(?P<", pattern))
    except re.error as error:
        raise ConfigError(f"{_CONFIG}: the pattern of {rule} is invalid: {error}") from None
