"""What several folders of tests share: Apache Kafka as an oracle, raw frames, batches by hand, waiting."""
