"""`kafka-reassign-partitions`."""
