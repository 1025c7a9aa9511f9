"""Kafka Connect on Spark: data moves in and out of topics by configuration.

Rooms, lowest first: `data` the data model, `config` definitions of settings, `converters` bytes ↔ values,
`transforms` what happens to a record between connector and converter.
"""
