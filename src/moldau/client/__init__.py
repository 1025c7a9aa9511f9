"""The Python APIs towards any Kafka-protocol cluster: the admin client, and what routes its requests."""
