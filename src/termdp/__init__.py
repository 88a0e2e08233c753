"""Reinforcement learning when somebody outside can end the episode."""
