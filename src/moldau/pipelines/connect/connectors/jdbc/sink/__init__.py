"""Records as rows of tables."""
