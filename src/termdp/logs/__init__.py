"""Observers fitted to logs of sessions and their stops."""
