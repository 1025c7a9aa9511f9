"""Scale: long topics, many partitions, and the metadata of large clusters."""
