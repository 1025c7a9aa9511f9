"""Clusters of real processes under load while nodes are killed, paused and partitioned."""
