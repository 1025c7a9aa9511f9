"""`kafka-metadata-quorum`."""
