"""Values as text and text as values, with Kafka's rules for headers and literals, which have no schema."""
