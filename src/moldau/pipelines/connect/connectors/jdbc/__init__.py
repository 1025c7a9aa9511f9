"""Connectors for relational databases, with the names and settings of Confluent's JDBC connector."""
