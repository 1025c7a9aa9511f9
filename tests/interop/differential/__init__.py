"""The same requests to Apache Kafka and to Moldau, and their answers side by side."""
