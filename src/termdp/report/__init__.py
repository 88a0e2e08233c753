"""Pages, tables and figures about results."""
