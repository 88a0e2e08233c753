"""Features of small grids: Stable-Baselines3's own convolutions are too large."""

import math
from typing import Any

import torch
from gymnasium import spaces
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import nn


class GridExtractor(BaseFeaturesExtractor):
    """One 3×3 convolution, then a dense layer: the network of the preset `fast`.

    Args:
        observation_space: grids `[height, width, channels]`, or a dictionary of them
            (`observation`) and of vectors, which join before the dense layer.
        filters: of the convolution.
        hidden: width of the dense layer.
    """

    def __init__(
        self, observation_space: spaces.Space, filters: int = 16, hidden: int = 256
    ):
        super().__init__(observation_space, hidden)
        grid: Any = observation_space
        others = 0
        if isinstance(observation_space, spaces.Dict):
            parts = dict(observation_space.spaces)
            grid = parts.pop("observation", None)
            others = sum(math.prod(part.shape or ()) for part in parts.values())
        shape: tuple[int, ...] = getattr(grid, "shape", None) or ()
        if len(shape) != 3 or min(shape[:2]) < 3:
            raise ValueError(
                "expected grids [height, width, channels] of at least 3×3 cells, got "
                f"{observation_space}"
            )
        height, width, channels = shape
        self.convolution = nn.Conv2d(channels, filters, 3)
        cells = filters * (height - 2) * (width - 2)
        self.dense = nn.Linear(cells + others, hidden)

    def forward(self, observations: Any) -> torch.Tensor:
        """Features `[batch, hidden]`."""
        others = []
        if isinstance(observations, dict):
            others = [
                part.flatten(1)
                for name, part in observations.items()
                if name != "observation"
            ]
            observations = observations["observation"]
        found = torch.relu(self.convolution(observations.permute(0, 3, 1, 2)))
        return torch.relu(self.dense(torch.cat([found.flatten(1), *others], dim=1)))
