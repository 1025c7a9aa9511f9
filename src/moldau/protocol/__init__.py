"""Bytes to messages and back, without I/O: the wire, stored records, record batches, compression.

`schema` holds the words that messages are declared with, and `encode` and `decode`; `compiler` turns a
declaration and a version into straight-line Python the first time it is needed; `messages/` has one file per
API and `stored/` one per family of stored records; `apis` is the table of all APIs.
"""
