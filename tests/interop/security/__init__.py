"""Security beside Apache Kafka: clients of every mechanism, decisions of ACLs, logins, folders, clusters."""
