"""The node: wires all packages below it, and handles the requests of clients and other nodes."""
