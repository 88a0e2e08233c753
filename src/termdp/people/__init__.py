"""People as observers: rides, stops, and models of those who stopped them."""
