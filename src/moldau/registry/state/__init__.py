"""The state of the registry and the decisions about it. Pure: no I/O, no clock."""
