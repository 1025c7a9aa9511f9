"""Generated records in the shapes of Confluent's quick starts."""
