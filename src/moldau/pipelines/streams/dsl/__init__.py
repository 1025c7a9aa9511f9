"""The DSL and the Processor API: builders, streams, tables, and their configuration objects."""
