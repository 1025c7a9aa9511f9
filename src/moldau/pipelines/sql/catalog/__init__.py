"""The catalog of streams, tables and persistent queries, stored in a topic."""
