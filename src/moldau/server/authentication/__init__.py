"""Who a connection belongs to: TLS and SASL of the listeners, and of the connections to other nodes."""
