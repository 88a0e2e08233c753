"""The Gymnasium side: observers for any Gymnasium environment, and our games as ids.

`ObserverWrapper` and `ObserverVectorWrapper` put an observer around somebody's own
environment, in NumPy. `JaxEnv` and `JaxVectorEnv` show a JAX environment as a Gymnasium
one; the ids `termdp/…-v0` are made this way.
"""

from termdp.gym.gymnasium_env import JaxEnv
from termdp.gym.gymnasium_vector_env import JaxVectorEnv
from termdp.gym.observer_wrapper import ObserverWrapper
from termdp.gym.vector_wrapper import ObserverVectorWrapper

__all__ = ["JaxEnv", "JaxVectorEnv", "ObserverVectorWrapper", "ObserverWrapper"]
