"""The coordinators at work: their shards over the partitions of internal topics that this node leads."""
