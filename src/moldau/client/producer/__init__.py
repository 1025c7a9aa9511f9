"""The producer, over librdkafka."""
