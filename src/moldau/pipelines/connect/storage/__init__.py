"""The state of Connect workers in records: configurations, statuses and offsets of connectors.

The states (`config_state`, `status_state`, `offset_state`) are pure and replay records in the formats of
Kafka Connect. A log stores the records: a topic (`topic_log`) for distributed workers, memory (`log`) or a
file (`offset_file`) for standalone ones.
"""
