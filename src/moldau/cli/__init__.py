"""The command line: `moldau` with its own commands (`moldau/`), and Kafka's tools (`kafka/`)."""
