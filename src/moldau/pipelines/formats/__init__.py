"""Serialization formats of keys and values as Spark columns, by ksqlDB's names."""
