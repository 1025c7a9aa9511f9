"""The active controller, local or remote: requests to it, envelopes, registration, broker failures."""
