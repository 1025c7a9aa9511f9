"""Connect: our worker beside the worker of Apache Kafka Connect."""
