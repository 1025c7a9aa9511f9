"""OpenTelemetry traces: trace contexts in record headers, the exporter of spans, and attribute names.

Optional: `pip install "moldau[otel]"`. Clients, brokers and pipelines import this package only if tracing is
switched on, so that it costs nothing otherwise.
"""
