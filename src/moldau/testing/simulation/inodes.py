"""Files of a simulated drive: the content that programs see, the durable content, and pending changes.

A write is visible to programs at once and pending as a `Change` until a sync. Power loss decides the fate
of pending changes. The rules are those of a page cache above sectors:

- A sector is written whole. Any of its versions since the last sync may be durable, independent of other
  sectors: a large write may be torn, and a later write may be durable while an earlier one is not.
- The size is separate from the content: any of its values since the last sync may be durable, and content
  that is not durable reads as zeros.
- Truncated content does not reappear once a size of that truncation or later is durable.
- A failed sync drops the changes: programs still see them, but no later sync writes them, as on Linux.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from random import Random
from typing import NamedTuple

SECTOR = 512


class Change(NamedTuple):
    """A change to `size` and to the content of `sectors`.

    `cut_from` is the first sector a truncation cut into; None for writes.
    """

    size: int
    sectors: dict[int, bytes]
    cut_from: int | None = None


class Fate(Enum):
    """The effect of power loss on the unsynced changes of a file."""

    LOST = 0
    KEPT = 1
    #: All changes up to a random one are durable.
    PREFIX = 2
    #: Each sector is decided independently.
    TORN = 3
    #: The size is durable, the content is not.
    ZEROS = 4


class Inode:
    __slots__ = ("changes", "data", "durable", "linked", "modified_ms")

    def __init__(self, data: bytes = b"", modified_ms: int = 0) -> None:
        self.data = bytearray(data)
        self.durable = data
        self.changes: list[Change] = []
        self.modified_ms = modified_ms
        self.linked = True

    def write(self, data: bytes, offset: int) -> None:
        end = offset + len(data)
        if offset > len(self.data):
            self.data.extend(bytes(offset - len(self.data)))
        self.data[offset:end] = data
        touched = range(offset // SECTOR, -(-end // SECTOR))
        self.changes.append(Change(len(self.data), {number: self._sector(number) for number in touched}))

    def truncate(self, size: int) -> None:
        if size < len(self.data):
            del self.data[size:]
            cut = size // SECTOR
            partial = {cut: self._sector(cut)} if size % SECTOR else {}
            self.changes.append(Change(size, partial, cut))
        elif size > len(self.data):
            self.data.extend(bytes(size - len(self.data)))
            self.changes.append(Change(size, {}))

    def sync(self) -> None:
        self.durable = survivors(self.durable, self.changes, Fate.KEPT, None)
        self.changes.clear()

    def drop_changes(self) -> None:
        """Drop pending changes after a failed sync."""
        self.changes.clear()

    def _sector(self, number: int) -> bytes:
        return bytes(self.data[number * SECTOR : (number + 1) * SECTOR])


def survivors(durable: bytes, changes: Sequence[Change], fate: Fate, random: Random | None) -> bytes:
    """Return the content after power loss."""
    if not changes or fate is Fate.LOST:
        return durable
    last = len(changes)
    sized = last
    if random is not None and fate in (Fate.PREFIX, Fate.TORN):
        sized = random.randint(0, last)
    size = changes[sized - 1].size if sized else len(durable)
    content = bytearray(durable[:size].ljust(size, b"\0"))
    for change in changes[:sized]:
        if change.cut_from is not None and change.size < size:
            # Truncated content does not reappear when the file has grown again.
            content[change.size :] = bytes(size - change.size)
    for number, versions in _versions(changes, sized).items():
        image = _chosen(versions, fate, sized, random)
        if image is not None:
            start = number * SECTOR
            room = max(0, min(SECTOR, size - start))
            content[start : start + room] = image[:room].ljust(room, b"\0")
    return bytes(content)


def _versions(changes: Sequence[Change], sized: int) -> dict[int, list[tuple[int, bytes]]]:
    """Return the possibly durable versions of each changed sector, with the number of their change.

    A truncation divides time: with a size from before it only versions from before it can be there.
    """
    found: dict[int, list[tuple[int, bytes]]] = {}
    for place, change in enumerate(changes, 1):
        if change.cut_from is not None:
            for number, versions in found.items():
                if number >= change.cut_from and place <= sized:
                    versions.clear()
            if place > sized:
                break
        for number, image in change.sectors.items():
            found.setdefault(number, []).append((place, image))
    return found


def _chosen(versions: list[tuple[int, bytes]], fate: Fate, sized: int, random: Random | None) -> bytes | None:
    """Choose a version; None for the content before all changes."""
    if fate is Fate.KEPT or random is None:
        choice = len(versions)
    elif fate is Fate.PREFIX:
        choice = sum(1 for place, _ in versions if place <= sized)
    elif fate is Fate.ZEROS:
        choice = 0
    else:
        choice = random.randint(0, len(versions))
    return versions[choice - 1][1] if choice else None
