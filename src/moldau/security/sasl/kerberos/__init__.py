"""SASL GSSAPI (RFC 4752): Kerberos tickets, with the package `gssapi` of the extra `moldau[kerberos]`."""
