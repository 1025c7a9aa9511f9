"""Connections: frames, listeners and limits of a node; connections to other nodes."""
