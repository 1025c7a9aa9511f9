"""What is kept in files and internal topics, declared with the same words as what is sent."""
