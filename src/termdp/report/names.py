"""Names, order, colours and markers of methods and environments in reports.

A label may end in `_discount_D`: the same method with another discount.
"""

import colorsys
import zlib
from collections.abc import Iterable, Mapping

from termdp.registry import REGISTRY

# Printed once in every report that has a table.
ABBREVIATIONS = (
    "PG: policy gradient, here PPO. RS: reward shaping, −p on a stop. Discount D: the "
    "constant factor in TermPG's and the oracle's dynamic discount."
)

# In the order of tables and figures.
METHOD_NAMES = {
    "pg": "PG",
    "pg_naive": "PG, ends ignored",
    "pg_recurrent": "Recurrent PG",
    "pg_rs": "PG + RS",
    "termpg": "TermPG",
    "termpg_rs": "TermPG + RS",
    "termpg_penalty": "TermPG + Penalty",
    "oracle": "Oracle",
    "termpg_paper": "TermPG (paper)",
    "termpg_std": "Optimism std",
    "termpg_std_0.5": "Optimism std, α = 0.5",
    "termpg_std_1": "Optimism std, α = 1",
    "termpg_std_2": "Optimism std, α = 2",
    "termpg_mean": "No optimism",
    "termpg_logit": "Optimism logit",
    "termpg_fixed_discount": "No dynamic discount",
    "termpg_half_window": "×0.5 window",
    "termpg_double_window": "×2 window",
    "termpg_bonus_0.1": "Cost bonus 0.1",
    "termpg_bonus_1": "Cost bonus 1",
    "termpg_bonus_std_0.1": "Cost bonus 0.1, U = std",
    "termpg_bonus_std_1": "Cost bonus 1, U = std",
    "pg_matched": "PG, matched discount",
    "pg_0.953": "PG, discount 0.953",
    "pg_naive_0.953": "PG, ends ignored, discount 0.953",
    "pg_0.97": "PG, discount 0.97",
    "pg_0.995": "PG, discount 0.995",
    "pg_0.999": "PG, discount 0.999",
    "pg_recurrent_rs": "Recurrent PG + RS",
    "oracle_discount_0.97": "Oracle, discount 0.97",
    "termpg_discount_0.97": "TermPG, discount 0.97",
    "termpg_cut": "TermPG, stops cut",
    "termpg_ignored": "TermPG, ends ignored",
    "termpg_window_0.25": "×0.25 window",
    "termpg_window_4": "×4 window",
    "rosarl": "ROSARL",
    "rlif": "RLIF",
    "rlif_task": "RLIF + task reward",
    "rift": "RIFT",
    "ppo_lagrangian": "PPO-Lagrangian",
    "ct": "Episode classifier",
    "traces": "TraCeS, discount",
    "traces_lagrangian": "TraCeS, Lagrangian",
}

# Cool and grey colours for PG, warm ones for TermPG, green for agents told the costs.
COLOURS = {
    "pg": "#5b6478",
    "pg_naive": "#a5adbd",
    "pg_recurrent": "#2f9e9e",
    "pg_recurrent_rs": "#0b7285",
    "pg_rs": "#3b6fd4",
    "pg_matched": "#6f5bd0",
    "pg_0.953": "#9db4e8",
    "pg_naive_0.953": "#c9cdd6",
    "pg_0.97": "#7d97d6",
    "pg_0.995": "#4a6bb5",
    "pg_0.999": "#1c3f94",
    "termpg": "#d6336c",
    "termpg_discount_0.97": "#9c36b5",
    "termpg_paper": "#6741d9",
    "termpg_rs": "#f08c00",
    "termpg_penalty": "#8a4b1f",
    "termpg_std": "#e8590c",
    "termpg_std_0.5": "#ffa94d",
    "termpg_std_1": "#fd7e14",
    "termpg_std_2": "#bf4408",
    "termpg_mean": "#c9a200",
    "termpg_logit": "#f06595",
    "termpg_fixed_discount": "#846358",
    "termpg_half_window": "#da77f2",
    "termpg_double_window": "#be4bdb",
    "termpg_window_0.25": "#e599f7",
    "termpg_window_4": "#862e9c",
    "termpg_bonus_0.1": "#ff8787",
    "termpg_bonus_1": "#e03131",
    "termpg_bonus_std_0.1": "#ffc9c9",
    "termpg_bonus_std_1": "#c92a2a",
    "termpg_cut": "#faa2c1",
    "termpg_ignored": "#e0b0a0",
    "oracle": "#2b8a3e",
    "oracle_discount_0.97": "#66a80f",
    "rosarl": "#495057",
    "rlif": "#868e96",
    "rlif_task": "#343a40",
    "rift": "#0c8599",
    "ppo_lagrangian": "#3bc9db",
    "ct": "#a9e34b",
    "traces": "#5f3dc4",
    "traces_lagrangian": "#b197fc",
}
MORE_COLOURS = (
    "#e64980",
    "#4263eb",
    "#1098ad",
    "#b08900",
    "#5c940d",
    "#1864ab",
    "#ae3ec9",
    "#74574c",
)
# Each method also has its own marker, for readers who cannot tell the colours apart.
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "p", "h", "<", ">", "8")


def split_discount(row: str) -> tuple[str, str]:
    """A label's method and discount: `termpg_rs_discount_1` is `termpg_rs` with `1`.

    The discount is empty if the label has none; then it is the method's own.
    """
    method, _, discount = row.partition("_discount_")
    return method, discount


def has_usual_discount(row: str) -> bool:
    """Whether the discount is the method's own, or the paper's, which is 1."""
    return split_discount(row)[1] in ("", "1")


def method_name(row: str) -> str:
    """A row's name for people."""
    method, discount = split_discount(row)
    if row in METHOD_NAMES or method not in METHOD_NAMES:
        return METHOD_NAMES.get(row, row)
    return f"{METHOD_NAMES[method]}, discount {discount}"


def in_order(rows: Iterable[str]) -> list[str]:
    """Rows in the order of the tables; those without a name come last."""
    place = {row: index for index, row in enumerate(METHOD_NAMES)}

    def key(row: str) -> tuple[int, str]:
        return place.get(row, place.get(split_discount(row)[0], len(place))), row

    return sorted(set(rows), key=key)


def column_name(column: str) -> str:
    """A column's name for people: the environment's, and what is special about it."""
    env = environment(column)
    if env is None:
        return column
    if env == column:
        return _display_name(env)
    rest = column.removeprefix(env + "_").replace("_", " ")
    return f"{'Backseat' if env == 'backseat' else _display_name(env)} {rest}"


def environment(column: str) -> str | None:
    """The environment that a column's label begins with."""
    found = [env for env in REGISTRY if f"{column}_".startswith(f"{env}_")]
    return max(found, key=len, default=None)


def _display_name(env: str) -> str:
    return REGISTRY[env].display_name


def colours(rows: Iterable[str]) -> dict[str, str]:
    """A colour per method, all different, the same in every figure."""
    return _different({row: _method_colour(row) for row in rows})


def marker(row: str) -> str:
    """The shape of a method's points, the same in every figure."""
    method, discount = split_discount(row)
    names = list(METHOD_NAMES)
    main = ("pg", "termpg", "oracle")
    if row in main:
        return MARKERS[main.index(row)]
    place = names.index(method) if method in names else _number_of(method)
    return MARKERS[(place + _number_of(discount)) % len(MARKERS)]


def _number_of(name: str) -> int:
    """A number that depends on the name alone."""
    return zlib.crc32(name.encode())


def column_colours(columns: Iterable[str]) -> dict[str, str]:
    """A colour per environment and observer, the same in every figure."""
    return _different({column: _environment_colour(column) for column in columns})


def _method_colour(row: str) -> str | None:
    method, _ = split_discount(row)
    if row in COLOURS or method not in COLOURS:
        return COLOURS.get(row)
    red, green, blue = (int(COLOURS[method][i : i + 2], 16) / 255 for i in (1, 3, 5))
    hue, light, saturation = colorsys.rgb_to_hls(red, green, blue)
    darker = colorsys.hls_to_rgb(hue, 0.8 * light, saturation)
    return "#" + "".join(f"{round(255 * part):02x}" for part in darker)


def _environment_colour(column: str) -> str | None:
    env = environment(column)
    return None if env is None else REGISTRY[env].colour


def _different(wanted: Mapping[str, str | None]) -> dict[str, str]:
    """Preferred colours; a name without one, or whose colour is taken, gets a spare.

    The spare depends on the name, so that it is usually the same in all figures.
    """
    found: dict[str, str] = {}
    for name, colour in wanted.items():
        if colour is not None and colour not in found.values():
            found[name] = colour
    for name in wanted:
        if name not in found:
            first = _number_of(name) % len(MORE_COLOURS)
            spare = MORE_COLOURS[first:] + MORE_COLOURS[:first]
            free = [colour for colour in spare if colour not in found.values()]
            found[name] = (free or spare)[0]
    return {name: found[name] for name in wanted}
