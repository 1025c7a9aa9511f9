"""The broker's configs: their values from all sources, and the rules between them."""
