"""The REST proxy: Confluent's REST Proxy API, v2 and v3, for any Kafka cluster, and consuming over v3."""
