"""Models of passengers fitted to their stops."""
