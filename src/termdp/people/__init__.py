"""People as observers: rides, the store of their stops, the server, the data."""
