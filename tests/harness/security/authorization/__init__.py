"""Requests of users with and without the ACLs that they need, as data; see `authorization_cases.py`."""
