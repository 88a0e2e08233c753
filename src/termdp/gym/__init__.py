"""Gymnasium: observers for any Gymnasium environment, and our games as ids.

`ObserverWrapper` and `ObserverVectorWrapper` put an observer around your environment, in
NumPy. `JaxEnv` and `JaxVectorEnv` turn a JAX environment into a Gymnasium one, as for the
ids `termdp/…-v0`.
"""

from termdp.gym.gymnasium_env import JaxEnv
from termdp.gym.gymnasium_vector_env import JaxVectorEnv
from termdp.gym.observer_wrapper import ObserverWrapper
from termdp.gym.vector_wrapper import ObserverVectorWrapper

__all__ = ["JaxEnv", "JaxVectorEnv", "ObserverVectorWrapper", "ObserverWrapper"]
