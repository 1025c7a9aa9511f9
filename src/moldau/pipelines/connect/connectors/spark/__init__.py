"""Any data source of Spark as a source of topics."""
