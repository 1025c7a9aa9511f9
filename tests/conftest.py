"""For all tests: a slow machine is no reason for a property to fail."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("moldau", deadline=None, print_blob=True)
settings.load_profile("moldau")
