"""Partitions: leaders, in-sync replicas, reassignment."""
