"""Connectors, a package each. `moldau.pipelines.connect.plugins` lists them by name."""
