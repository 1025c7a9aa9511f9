"""What tests of several folders share: Apache Kafka as an oracle, raw frames, batches made by hand, waiting."""
