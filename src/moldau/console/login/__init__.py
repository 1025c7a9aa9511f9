"""Who uses the console: sessions, SCRAM users, OpenID Connect, roles, and a back-off for failed attempts."""
