"""Errors of the metadata quorum."""

from __future__ import annotations


class UnusableMetadata(Exception):
    """The metadata folder is damaged, belongs to another node, or needs a feature that is not supported.

    The message names the file and the remedy, if there is one.
    """
