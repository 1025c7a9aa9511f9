"""This broker among the others: lifecycle, connections, directory assignments, high watermarks of leaders."""
