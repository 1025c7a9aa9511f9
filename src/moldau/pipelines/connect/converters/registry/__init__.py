"""Converters whose data name their schema in a schema registry, as Confluent's."""
