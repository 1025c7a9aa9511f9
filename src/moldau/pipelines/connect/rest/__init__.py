"""The REST API of Kafka Connect 4.3: a module per resource, errors and status codes as Kafka Connect's."""
