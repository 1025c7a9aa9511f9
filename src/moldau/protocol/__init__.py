"""Bytes to messages and back, without I/O: the wire, stored records, record batches, compression.

`schema` declares messages and has `encode` and `decode`; `compiler` turns a declaration and a version into
straight-line Python at first use; `messages/` has one file per API and `stored/` one per family of stored
records; `api_keys` names the APIs and `apis` is the table of their versions.
"""
