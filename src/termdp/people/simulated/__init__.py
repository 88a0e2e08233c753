"""Simulated passengers, who use the server as people do."""
