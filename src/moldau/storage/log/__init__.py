"""One log: its segments, appends, reads, flushes, validation, retention and recovery."""
