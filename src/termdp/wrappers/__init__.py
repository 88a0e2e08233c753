"""What is put around an environment."""
