"""The notifier's cost: notifications annoy, above all a user who is not interested."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from termdp.envs.notifier import SEND


@struct.dataclass
class NotifierNuisanceCost:
    """`welcome` + `nuisance`·(1 − interest) for sending, −`relief` for keeping quiet.

    Attributes:
        welcome: cost of a notification to a fully interested user.
        nuisance: added for a user without interest.
        relief: subtracted at a quiet step.
    """

    welcome: Any = 3.5
    nuisance: Any = 2.0
    relief: Any = 0.0

    def __call__(self, observation: Any, action: Any) -> Any:
        """The cost of one unbatched pair, a float32 scalar."""
        xp: Any = jnp if isinstance(observation, jax.Array) else np
        disturbance = self.welcome + self.nuisance * (1.0 - observation[0])
        cost = xp.where(action == SEND, disturbance, 0.0 - self.relief)
        return cost.astype(np.float32)[()]
