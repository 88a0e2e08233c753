"""Benchmark suites: plans, engines, and results on disk."""
