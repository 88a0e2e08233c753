"""Gymnasium ids; run by Gymnasium through the package's entry point."""

import gymnasium

from termdp.registry import REGISTRY


def register_environments() -> None:
    """Register `termdp/…-v0` for every environment of the table."""
    for spec in REGISTRY.values():
        if spec.gym_id in gymnasium.registry:
            continue
        gymnasium.register(
            id=spec.gym_id,
            entry_point="termdp.gym.face:make_env",
            vector_entry_point="termdp.gym.vector_face:make_vector_env",
            kwargs={"env_id": spec.id},
        )
