"""The sink for OpenSearch and Elasticsearch."""
