"""Words every other package shares: ids, clock, error codes, configuration. Imports nothing of ours."""
