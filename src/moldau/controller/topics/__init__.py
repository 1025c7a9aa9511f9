"""Topics: creation, deletion, replica placement."""
