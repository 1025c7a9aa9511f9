"""SASL OAUTHBEARER (RFC 7628): tokens of an identity provider, or unsecured ones for development."""
