"""Errors of statements: the message, the place in the text, and a hint."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches

from moldau.base.errors import ErrorCode, KafkaError


@dataclass(frozen=True, slots=True)
class Place:
    """A range of a text: the first character, and the one after the last."""

    text: str
    start: int
    end: int

    @property
    def line(self) -> int:
        return self.text.count("\n", 0, self.start) + 1

    @property
    def column(self) -> int:
        return self.start - (self.text.rfind("\n", 0, self.start) + 1) + 1

    def of(self, word: str | None) -> Place:
        """Return the place of a word within this place, or this place if the word is not found."""
        at = self.text.upper().find(word.upper(), self.start, self.end) if word else -1
        return Place(self.text, at, at + len(word)) if word and at >= 0 else self

    def shown(self) -> str:
        """Return the line of the text with the place underlined."""
        begin = self.text.rfind("\n", 0, self.start) + 1
        end = self.text.find("\n", self.start)
        line = self.text[begin : end if end >= 0 else len(self.text)]
        width = max(1, min(self.end, begin + len(line)) - self.start)
        return f"  {line}\n  {' ' * (self.start - begin)}{'^' * width}"


class SqlError(KafkaError):
    """A statement that cannot be executed. `str()` includes the place and the hint.

    If the place is not known yet, `word` is the word to look for. `file` is the script that contains the
    text.
    """

    def __init__(
        self,
        message: str,
        place: Place | None = None,
        hint: str | None = None,
        *,
        word: str | None = None,
        file: str | None = None,
    ) -> None:
        self.sentence, self.place, self.hint = message, place, hint
        self.word, self.file = word, file
        where = [f"{file}"] if file else []
        where += [f"line {place.line}, column {place.column}"] if place else []
        parts = [f"{', '.join(where)}: {message}" if where else message]
        if place is not None:
            parts.append(place.shown())
        if hint:
            parts.append(hint)
        super().__init__(ErrorCode.INVALID_REQUEST, "\n".join(parts))

    def at(self, place: Place) -> SqlError:
        """Return the error with a place, unless it has one."""
        if self.place is not None:
            return self
        return SqlError(self.sentence, place.of(self.word), self.hint, file=self.file)

    def of_file(self, file: str) -> SqlError:
        """Return the error with the script that contains the text."""
        return SqlError(self.sentence, self.place, self.hint, file=self.file or file)


def suggestion(word: str, known: Iterable[str]) -> str | None:
    """Return "Did you mean …?" if a known word is similar."""
    names = {name.lower(): name for name in known}
    close = get_close_matches(word.lower(), names, n=1, cutoff=0.6)
    return f"Did you mean {names[close[0]]}?" if close else None
