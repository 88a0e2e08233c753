"""Costs learned from episodes that are given, with a task whose truth is known."""
