"""Logs on disk: segments, indexes, producer state, recovery, compaction, and the many logs of a node."""
