"""The base of all packages: ids, clock, error codes, thread pool, back-off. Imports no other package."""
