"""What several tests of tiered storage share."""
