"""`kafka-console-producer`, `kafka-console-consumer` and `kafka-console-share-consumer`."""
