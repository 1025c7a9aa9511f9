"""The requests of a round: groups, their members and offsets, and the offsets of the partitions they read."""
