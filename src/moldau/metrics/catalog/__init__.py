"""The families that a node serves, one module for each part of Kafka's MBeans, and ours."""
