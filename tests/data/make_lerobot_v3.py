"""Made `lerobot_v3/`, with LeRobot's own writer; see README.md beside it."""

import importlib.machinery
import sys
import types

import numpy as np


class Absent(types.ModuleType):
    """In place of packages that LeRobot imports for pictures and training alone."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


for absent in (
    *("accelerate", "torchvision", "torchvision.io", "torchvision.utils"),
    *("torchvision.transforms", "torchvision.transforms.functional"),
    *("torchvision.transforms.v2", "torchvision.transforms.v2.functional"),
):
    module = Absent(absent)
    module.__spec__ = importlib.machinery.ModuleSpec(absent, None)
    module.__path__ = []
    sys.modules[absent] = module

from lerobot.datasets.lerobot_dataset import LeRobotDataset  # noqa: E402

FEATURES = {
    "observation.state": {
        "dtype": "float32",
        "shape": (2,),
        "names": ["x", "speed"],
    },
    "action": {"dtype": "float32", "shape": (2,), "names": ["push", "grip"]},
    "next.success": {"dtype": "bool", "shape": (1,), "names": None},
    "intervention": {"dtype": "bool", "shape": (1,), "names": None},
}


def main():
    rng = np.random.default_rng(0)
    written = LeRobotDataset.create(
        "termdp/tiny", fps=10, features=FEATURES, root=sys.argv[1], use_videos=False
    )
    for _ in range(20):
        recent = []
        for step in range(60):
            x, speed = rng.normal(), rng.uniform()
            push = rng.normal(size=2)
            recent.append(2 * speed)
            stop = rng.uniform() < 1 / (1 + np.exp(8 - sum(recent[-5:])))
            done = step == 49 and not stop
            frame = {
                "observation.state": np.array([x, speed], np.float32),
                "action": push.astype(np.float32),
                "next.success": np.array([done]),
                "intervention": np.array([stop]),
                "task": "reach",
            }
            written.add_frame(frame)
            if stop or done:
                break
        written.save_episode()
    written.finalize()


if __name__ == "__main__":
    main()
