"""Paths in the metadata tree: find nodes by name or pattern, and complete partial paths.

Patterns are those of Kafka's shell: `*`, `?` and `{a,b}` within a component; a backslash quotes the next
character.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from moldau.cli.kafka.metadata_shell.tree import SHORTCUTS, Directory, Leaf, Node


class Found(NamedTuple):
    path: tuple[str, ...]
    node: Node

    @property
    def name(self) -> str:
        return self.path[-1] if self.path else "/"

    @property
    def absolute(self) -> str:
        return "/" + "/".join(self.path)


def components(path: str, working_directory: str = "/") -> list[str]:
    """Return the components of a path from the root, with `.` and `..` resolved."""
    names: list[str] = []
    for name in (path if path.startswith("/") else f"{working_directory}/{path}").split("/"):
        if name == "..":
            del names[-1:]
        elif name not in ("", "."):
            names.append(name)
    return names


def find(root: Directory, path: str, working_directory: str = "/") -> list[Found]:
    """Return all nodes that a path matches; its components may be patterns."""
    wanted = components(path, working_directory)
    found = list(_matches(Found((), root), wanted))
    if not found and wanted and wanted[0] in SHORTCUTS:
        found = list(_matches(Found((), root), [*SHORTCUTS[wanted[0]], *wanted[1:]]))
    return found


def _matches(at: Found, wanted: list[str]) -> Iterator[Found]:
    if not wanted:
        yield at
        return
    if isinstance(at.node, Leaf):
        return
    matcher = glob_matcher(wanted[0])
    names = [wanted[0]] if matcher is None else filter(matcher, at.node.names())
    for name in names:
        child = at.node.child(name)
        if child is not None:
            yield from _matches(Found((*at.path, name), child), wanted[1:])


def glob_matcher(glob: str) -> Callable[[str], bool] | None:
    """Return a predicate for names, or None if the component contains no pattern."""
    pattern, literal, group = "", True, False
    characters = iter(glob)
    for character in characters:
        if character == "?":
            pattern, literal = pattern + ".", False
        elif character == "*":
            pattern, literal = pattern + ".*", False
        elif character == "\\":
            pattern += re.escape(next(characters, "\\"))
        elif character == "{":
            if group:
                return None
            pattern, literal, group = pattern + "(?:(?:", False, True
        elif character == "," and group:
            pattern += ")|(?:"
        elif character == "}" and group:
            pattern, group = pattern + "))", False
        else:
            pattern += re.escape(character)
    if literal or group:
        return None
    compiled = re.compile(pattern, re.DOTALL)
    return lambda name: compiled.fullmatch(name) is not None


def completions(root: Directory, typed: str, working_directory: str = "/") -> list[str]:
    """Return the completions of a partial path; a directory ends with a slash."""
    before, slash, last = typed.rpartition("/")
    parents = find(root, f"{before}{slash}" or ".", working_directory)
    if len(parents) != 1 or isinstance(parents[0].node, Leaf):
        return []
    parent = parents[0].node
    result = []
    for name in parent.names():
        if name.startswith(last):
            end = "/" if isinstance(parent.child(name), Directory) else ""
            result.append(f"{before}{slash}{name}{end}")
    if parents[0].path == ():
        result += [f"{before}{slash}{name}/" for name in sorted(SHORTCUTS) if last and name.startswith(last)]
    return result
