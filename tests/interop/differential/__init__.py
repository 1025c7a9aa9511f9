"""The same requests to Apache Kafka and to Moldau, and a comparison of the responses."""
