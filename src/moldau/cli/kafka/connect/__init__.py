"""`connect-standalone` and `connect-distributed`."""
