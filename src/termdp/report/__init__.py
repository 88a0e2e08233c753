"""From results to pages that people look at."""
