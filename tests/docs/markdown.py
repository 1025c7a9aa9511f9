"""The code blocks of the documentation."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]


class Block(NamedTuple):
    language: str
    text: str


def section(document: str, heading: str) -> str:
    """Return the section of a second-level heading; an empty heading is the text before the first one."""
    text = (ROOT / document).read_text()
    parts = re.split(r"(?m)^## (.*)$", text)
    if not heading:
        return parts[0]
    return parts[parts.index(heading) + 1]


def blocks(text: str, language: str | None = None) -> list[Block]:
    found = [Block(*match) for match in re.findall(r"(?ms)^```(\w+)\n(.*?)^```$", text)]
    return [block for block in found if language in (None, block.language)]
