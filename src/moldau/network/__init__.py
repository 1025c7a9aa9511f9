"""Sockets: listeners and their connections, frames, back-pressure; the connection used towards other nodes."""
