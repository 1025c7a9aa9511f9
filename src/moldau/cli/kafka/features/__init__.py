"""`kafka-features`."""
