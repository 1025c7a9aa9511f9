"""Collectors: each reads one part of the node and adds the samples of its families to a scrape."""
