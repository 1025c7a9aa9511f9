"""What all packages share: ids, clock, error codes, thread pool, back-off. Imports no other package."""
