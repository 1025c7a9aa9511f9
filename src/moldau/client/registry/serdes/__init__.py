"""Serializers and deserializers whose records carry the id of their schema, as Confluent's do."""
