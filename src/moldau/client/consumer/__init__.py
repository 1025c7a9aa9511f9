"""The consumer, over librdkafka."""
