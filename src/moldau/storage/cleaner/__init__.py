"""Log compaction: the choice of logs, the cleaner process, and what it retains."""
