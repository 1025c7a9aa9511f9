"""What all HTTP services share: listeners on uvicorn, TLS, authentication, CORS, bounded bodies, errors."""
