"""The store: studies, rides, supervisors, stops; and their files."""
