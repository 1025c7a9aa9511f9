"""Clusters of real processes under load while nodes are killed, paused and cut off; what must hold then."""
