"""Authentication of HTTP requests: basic credentials, bearer tokens, certificates of clients."""
