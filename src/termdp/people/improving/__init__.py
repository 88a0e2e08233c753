"""Rounds of a study: fit an observer to its stops, train a driver under it, ask again."""
