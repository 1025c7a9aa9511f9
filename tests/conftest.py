"""For all tests: a slow machine is no reason for a property to fail, and Ctrl-C means something."""

from __future__ import annotations

import signal

from hypothesis import settings

settings.register_profile("moldau", deadline=None, print_blob=True)
settings.load_profile("moldau")

# In the background of a script a process ignores Ctrl-C, and so would all that tests start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
