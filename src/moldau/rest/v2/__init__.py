"""API v2: topics, partitions, producing, consumer instances."""
