"""Spaces to arrays: worked out by hand, and what is refused."""

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from termdp.gym.encoding import Encoding, Part, encoding_of

TWO = spaces.Discrete(2)


def of(space, actions=TWO, **options):
    return encoding_of(space, actions, **options)


def test_a_vector_is_itself():
    encoding = of(spaces.Box(-1, 1, (3,)))
    assert encoding == Encoding((Part((), (3,)),), (3,), "running")
    assert encoding.encode(np.array([[1.0, 2, 3]])).tolist() == [[1, 2, 3]]
    assert encoding.encode(np.array([1.0, 2, 3]), is_single=True).shape == (1, 3)


def test_choices_become_a_one_among_zeros():
    encoding = of(spaces.Discrete(3, start=5))
    assert encoding.scaling == "none"
    assert encoding.encode(np.array([5, 7])).tolist() == [[1, 0, 0], [0, 0, 1]]
    assert encoding.is_single(6)
    assert encoding.encode(6, is_single=True).tolist() == [[0, 1, 0]]


def test_dicts_are_joined_in_their_order():
    inside = spaces.Dict(
        {"x": spaces.Box(0, 9, (2, 2)), "flags": spaces.MultiBinary(2)}
    )
    encoding = of(spaces.Dict({"what": spaces.Discrete(2), "where": inside}))
    one = {"what": 1, "where": {"x": np.array([[1, 2], [3, 4]]), "flags": [0, 1]}}
    order = [part.path[-1] for part in encoding.parts]
    hand = {"what": [0, 1], "x": [1, 2, 3, 4], "flags": [0, 1]}
    expected = [number for name in order for number in hand[name]]
    assert encoding.is_single(one)
    assert encoding.encode(one, is_single=True).tolist() == [expected]
    assert encoding.scaling == "running" and encoding.shape == (8,)


def test_vector_environments_give_the_same_rows():
    space = spaces.Dict({"a": spaces.Discrete(3), "b": spaces.Box(-1, 1, (2,))})
    batch = gymnasium.vector.utils.batch_space(space, 4)
    batch.seed(0)
    together, encoding = batch.sample(), of(space)
    alone = [
        encoding.encode(one, is_single=True)[0]
        for one in gymnasium.vector.utils.iterate(batch, together)
    ]
    assert np.array_equal(encoding.encode(together), alone)


def test_pictures_keep_their_form_and_bytes():
    colours = of(spaces.Box(0, 255, (8, 9, 3), np.uint8))
    assert (colours.shape, colours.scaling, colours.dtype) == (
        (8, 9, 3),
        "pixels",
        "u1",
    )
    grey = of(spaces.Box(0, 255, (8, 9), np.uint8))
    assert grey.encode(np.zeros((2, 8, 9), np.uint8)).shape == (2, 8, 9, 1)
    assert of(spaces.Box(0, 1, (10, 10, 4))).scaling == "none"
    assert of(spaces.Box(0, 1, (96, 96, 4)), any_size=True).shape == (96, 96, 4)


@pytest.mark.parametrize(
    ("space", "sentence"),
    [
        (spaces.Tuple([TWO]), "got Tuple"),
        (spaces.Text(3), "got Text"),
        (spaces.Dict({"a": spaces.Graph(TWO, None)}), "Graph.*at 'a'"),
        (spaces.Dict({}), "that are not empty"),
        (spaces.Box(0, 255, (96, 96, 3), np.uint8), "ResizeObservation"),
        (spaces.Box(0, 255, (3, 1, 40), np.uint8), "move the channels"),
    ],
    ids=["tuple", "text", "graph", "empty", "large", "thin"],
)
def test_other_observations_are_refused(space, sentence):
    with pytest.raises(ValueError, match=sentence):
        of(space)


@pytest.mark.parametrize(
    ("space", "sentence"),
    [
        (spaces.MultiDiscrete([2, 2]), "Discrete or a Box of one dimension"),
        (spaces.Box(-1, 1, (2, 2)), "Discrete or a Box of one dimension"),
        (spaces.Box(-np.inf, np.inf, (2,)), "finite bounds.*TransformAction"),
    ],
    ids=["multi", "matrix", "infinite"],
)
def test_other_actions_are_refused(space, sentence):
    with pytest.raises(ValueError, match=sentence):
        of(TWO, space)


def test_an_observation_of_another_form_is_refused():
    encoding = of(spaces.Box(-1, 1, (4,)))
    with pytest.raises(ValueError, match=r"shape \(4,\).*got \(8,\)"):
        encoding.encode(np.zeros(8), is_single=True)
    with pytest.raises(ValueError, match="an observation with 'a'"):
        of(spaces.Dict({"a": TWO})).encode({"b": 1}, is_single=True)
