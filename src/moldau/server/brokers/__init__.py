"""This broker among the others: lifecycle, connections to other brokers, directory assignments."""
