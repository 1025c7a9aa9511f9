"""The group of distributed workers: Kafka Connect's group protocol, and which worker runs what."""
