"""Observers fitted to supervisors' stops."""
