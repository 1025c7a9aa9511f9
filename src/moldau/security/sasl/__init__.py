"""SASL mechanisms, both sides: PLAIN, SCRAM, OAUTHBEARER and GSSAPI without connections."""
