"""What is raised when the metadata log contradicts itself."""

from __future__ import annotations


class InconsistentMetadata(Exception):
    """Records that do not fit the state before them: the log is damaged, or was written by something else."""
