"""The commands: `moldau`, and the tools by the names Kafka's users know. One file per command group."""
