"""YAML nodes with line numbers for error messages.

Every mapping is read through a `Section`, which knows the allowed keys: the error about an unknown key
suggests the most similar one, the error about a value of the wrong type names the expected type.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import yaml

from moldau.pipelines.runtime.definition import BadDefinition

Scalar = str | int | float | bool | None


class Section:
    """A mapping in the file, with its allowed keys."""

    def __init__(self, file: Path, node: yaml.Node, name: str, keys: Sequence[str]) -> None:
        self.file = file
        self.name = name
        self.line = node.start_mark.line + 1
        if not isinstance(node, yaml.MappingNode):
            self.fail(f"{name} must be a mapping with the keys {', '.join(keys)}")
        self._values: dict[str, yaml.Node] = {}
        for key, value in node.value:
            word = str(key.value)
            if word not in keys:
                self.fail(_unknown(name, word, keys), key)
            if word in self._values:
                self.fail(f"{name} contains the key '{word}' twice", key)
            self._values[word] = value

    def fail(self, message: str, node: yaml.Node | None = None) -> NoReturn:
        line = self.line if node is None else node.start_mark.line + 1
        raise BadDefinition(f"{self.file}:{line}: {message}")

    def has(self, key: str) -> bool:
        return key in self._values

    def node(self, key: str) -> yaml.Node:
        return self._values[key]

    def text(self, key: str) -> str | None:
        """Return a scalar as text; None if the key is absent."""
        node = self._values.get(key)
        if node is None:
            return None
        if not isinstance(node, yaml.ScalarNode):
            self.fail(f"{self.name}.{key} must be a single value", node)
        value = str(node.value).strip()
        if not value:
            self.fail(f"{self.name}.{key} is empty", node)
        return value

    def required(self, key: str) -> str:
        value = self.text(key)
        if value is None:
            self.fail(f"{self.name} needs the key '{key}'")
        return value

    def choice(self, key: str, choices: Sequence[str], default: str) -> str:
        value = self.text(key)
        if value is None:
            return default
        if value.lower() not in choices:
            self.fail(_unknown(f"{self.name}.{key}", value, choices, "value"), self._values[key])
        return value.lower()

    def flag(self, key: str, default: bool) -> bool:
        return self.choice(key, ("true", "false"), str(default).lower()) == "true"

    def texts(self, key: str) -> tuple[str, ...]:
        """Return one value or a list of values."""
        node = self._values.get(key)
        if isinstance(node, yaml.SequenceNode):
            return tuple(self._scalar(key, item) for item in node.value)
        value = self.text(key)
        return () if value is None else (value,)

    def pairs(self, key: str) -> dict[str, str]:
        """Return a mapping of names to values."""
        node = self._values.get(key)
        if node is None:
            return {}
        if not isinstance(node, yaml.MappingNode):
            self.fail(f"{self.name}.{key} must be a mapping of names to values", node)
        return {str(name.value): self._scalar(key, value) for name, value in node.value}

    def section(self, key: str, keys: Sequence[str]) -> Section:
        return Section(self.file, self._values[key], f"{self.name}.{key}", keys)

    def items(self, key: str) -> list[yaml.Node]:
        node = self._values.get(key)
        if node is None:
            return []
        if not isinstance(node, yaml.SequenceNode):
            self.fail(f"{self.name}.{key} must be a list", node)
        return list(node.value)

    def _scalar(self, key: str, node: yaml.Node) -> str:
        if not isinstance(node, yaml.ScalarNode):
            self.fail(f"{self.name}.{key} must contain single values", node)
        return str(node.value)


def compose(file: Path, text: str) -> list[yaml.Node]:
    """Parse the documents of a file into YAML nodes."""
    try:
        return [node for node in yaml.compose_all(text, Loader=yaml.SafeLoader) if node is not None]
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = 1 if mark is None else mark.line + 1
        raise BadDefinition(f"{file}:{line}: invalid YAML: {error.problem}") from error
    except yaml.YAMLError as error:
        raise BadDefinition(f"{file}: invalid YAML: {error}") from error


def _unknown(name: str, word: str, known: Sequence[str], kind: str = "key") -> str:
    nearest = difflib.get_close_matches(word, known, 1, 0.6)
    hint = f"; did you mean '{nearest[0]}'?" if nearest else "."
    return f"{name} has no {kind} '{word}'{hint} Allowed: {', '.join(known)}"
