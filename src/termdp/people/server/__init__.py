"""The web application over the store, and a client for it."""
