"""librdkafka, the engine of producers and consumers: its properties, security and errors."""
