"""Gymnasium ids `termdp/…-v0`.

`import termdp` registers them. The package also names `register_environments` as its
entry point in the group `gymnasium.envs`; Gymnasium itself no longer reads that group
since 1.0, other tools do. Nothing heavy is imported here.
"""

from gymnasium.envs.registration import register, registry

from termdp.catalogue import REGISTRY


def register_environments() -> None:
    """Register every environment of the catalogue; a second call changes nothing."""
    for spec in REGISTRY.values():
        if spec.gym_id not in registry:
            register(
                id=spec.gym_id,
                entry_point="termdp.gym.face:make_env",
                vector_entry_point="termdp.gym.vector_face:make_vector_env",
                kwargs={"env_id": spec.id},
            )
