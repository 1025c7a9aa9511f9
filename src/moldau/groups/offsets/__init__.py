"""Committed offsets: commit, fetch, expiration and deletion."""
