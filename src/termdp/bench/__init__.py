"""Benchmark suites: what to run, where to run it, what is kept on disk."""
