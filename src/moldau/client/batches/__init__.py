"""Batch reader and batch writer: whole record batches by partition and offset range."""
