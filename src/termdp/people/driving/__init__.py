"""Rides as data: who drives, the road of a seed, record and replay."""
