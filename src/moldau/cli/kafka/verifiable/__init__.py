"""`kafka-verifiable-producer` and `kafka-verifiable-consumer`, for system tests."""
