"""The state of producers and transactions in a log."""
