"""The web side of the console: requests and answers, forms, protection, sessions, streams."""
