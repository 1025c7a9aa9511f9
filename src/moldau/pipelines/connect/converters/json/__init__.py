"""JSON with and without schemas, in the envelope of Kafka's JsonConverter."""
