"""Streams groups (KIP-1071): membership, topology, internal topics and the assignment of tasks."""
