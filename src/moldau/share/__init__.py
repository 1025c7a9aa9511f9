"""Share groups: records handed out one by one to whoever is free, until somebody has acknowledged them."""
