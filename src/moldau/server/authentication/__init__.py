"""Authentication: TLS and SASL of the listeners, and of the connections to other nodes."""
