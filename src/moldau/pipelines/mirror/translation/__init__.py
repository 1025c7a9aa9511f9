"""Translation of offsets between source and target partitions. Pure."""
