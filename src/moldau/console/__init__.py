"""The web console: a browser's view of one or several clusters, of Moldau or Apache Kafka."""
