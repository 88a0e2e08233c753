"""Agents: networks that act, what a method is, and how a policy is improved."""
