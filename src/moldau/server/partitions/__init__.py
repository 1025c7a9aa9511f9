"""Produce and Fetch besides their handlers: acks, transaction verification, fetch sessions, followers."""
