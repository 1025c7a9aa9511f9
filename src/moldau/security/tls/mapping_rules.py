"""`ssl.principal.mapping.rules`: turns the subject of a certificate into the name of a principal.

Rules are tried in order: `DEFAULT` takes the whole name, `RULE:pattern/replacement/[LU]` replaces the name if
the pattern matches all of it. Patterns and replacements are Java's: `$1` is a group, `\\` quotes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from moldau.config.definition import ConfigError

_RULE = r"(DEFAULT)|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?).*?|(.*?)"
_SPLITTER = re.compile(rf"\s*({_RULE})\s*(,\s*|$)")
_PARSER = re.compile(_RULE)
#: `(?<name>…)`, which Python writes `(?P<name>…)`; `(?<=` and `(?<!` are the same in both.
_JAVA_GROUP = re.compile(r"\(\?<(?=[A-Za-z])")
_REPLACEMENT = re.compile(r"\\(.)|\$\{(\w+)\}|\$(\d+)", re.DOTALL)


class NoMatchingRule(Exception):
    """No rule applies to the name of a certificate; the connection is closed."""


class PrincipalMapping:
    def __init__(self, rules: str | None) -> None:
        text = "DEFAULT" if rules is None else rules.strip()
        self._rules = list(_parse(text))

    def name_of(self, distinguished_name: str) -> str:
        for rule in self._rules:
            name = rule.apply(distinguished_name)
            if name is not None:
                return name
        raise NoMatchingRule(
            f"no rule of ssl.principal.mapping.rules applies to the certificate of {distinguished_name!r}"
        )


class _Rule(NamedTuple):
    #: None: DEFAULT.
    pattern: re.Pattern[str] | None
    replacement: str
    case: str

    def apply(self, name: str) -> str | None:
        if self.pattern is None:
            return name
        if self.pattern.fullmatch(name) is None:
            return None
        result = self.pattern.sub(self._expand, name)
        if self.case:
            return result.lower() if self.case == "L" else result.upper()
        return result

    def _expand(self, match: re.Match[str]) -> str:
        """Return the replacement with its groups; the number of a missing group is text, as in Kafka."""

        def part(found: re.Match[str]) -> str:
            if found[1] is not None:
                return found[1]
            if found[2] is not None:
                return match[found[2]] or ""
            return _group(match, found[3])

        return _REPLACEMENT.sub(part, self.replacement)


def _group(match: re.Match[str], digits: str) -> str:
    """Return the group of the most digits that name one, followed by the other digits."""
    groups = len(match.groups())
    for size in range(len(digits), 0, -1):
        number = int(digits[:size])
        if number <= groups and (number > 0 or size == 1):
            return (match[number] or "") + digits[size:]
    return f"${digits}"


def _parse(text: str) -> Iterator[_Rule]:
    for found in _SPLITTER.finditer(text):
        rule = found[1]
        match = _PARSER.match(rule)
        if match is None or match.end() != len(rule):
            rest = rule[match.end() :] if match else rule
            raise _invalid(f"Invalid rule: `{rule}`, unmatched substring: `{rest}`")
        if match[1] is not None:
            yield _Rule(None, "", "")
        elif match[2] is not None:
            yield _Rule(_compile(match[2]), match[3], match[4])


def _compile(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(_JAVA_GROUP.sub("(?P<", pattern))
    except re.error as error:
        raise _invalid(f"the pattern `{pattern}` is not a regular expression: {error}") from None


def _invalid(reason: str) -> ConfigError:
    return ConfigError(f"ssl.principal.mapping.rules: {reason}")
