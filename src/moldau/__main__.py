"""`python -m moldau` is `moldau`."""

from __future__ import annotations

import sys

from moldau.cli.main import main

sys.exit(main())
