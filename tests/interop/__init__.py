"""Other people's clients and tools in Java and Go."""
