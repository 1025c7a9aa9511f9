"""What stops a node whose metadata folder cannot be used."""

from __future__ import annotations


class UnusableMetadata(Exception):
    """The folder is damaged, belongs to another node, or needs what this release cannot do.

    The sentence names the file and, where there is something to do, says what.
    """
