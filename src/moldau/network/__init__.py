"""Sockets: listeners and their connections, frames, back-pressure; the connection towards other nodes."""
