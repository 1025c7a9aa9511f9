"""Producing records with v3: one at a time, as a stream, and in batches."""
