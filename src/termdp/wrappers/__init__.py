"""Wrappers around JAX environments."""
