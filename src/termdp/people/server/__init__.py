"""The web application on top of the store, and a client for it."""
