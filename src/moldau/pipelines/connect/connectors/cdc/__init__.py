"""Change data capture: the changes of a database's tables as events in Debezium's form."""
