"""How methods and environments are called and coloured in reports."""

METHOD_NAMES = {
    "pg": "PG",
    "pg_naive": "PG, ends ignored",
    "pg_recurrent": "Recurrent PG",
    "pg_recurrent_rs": "Recurrent PG + RS",
    "pg_rs": "PG + RS",
    "pg_matched": "PG, matched γ",
    "pg_0.953": "PG, γ = 0.953",
    "pg_naive_0.953": "PG, ends ignored, γ = 0.953",
    "pg_0.97": "PG, γ = 0.97",
    "termpg": "TermPG",
    "termpg_rs": "TermPG + RS",
    "termpg_penalty": "TermPG + Penalty",
    "termpg_std_0.5": "Optimism std, α = 0.5",
    "termpg_std_1": "Optimism std, α = 1",
    "termpg_std_2": "Optimism std, α = 2",
    "termpg_mean": "No optimism",
    "termpg_min": "Optimism min (paper)",
    "termpg_logit": "Optimism logit",
    "termpg_fixed_discount": "No dynamic discount",
    "termpg_horizon": "TermPG, γ × 0.97",
    "termpg_half_window": "×0.5 window",
    "termpg_double_window": "×2 window",
    "termpg_window_0.25": "×0.25 window",
    "termpg_window_4": "×4 window",
    "termpg_bonus_0.1": "Cost bonus 0.1",
    "termpg_bonus_1": "Cost bonus 1",
    "termpg_bonus_std_0.1": "Cost bonus 0.1, U = std",
    "termpg_bonus_std_1": "Cost bonus 1, U = std",
    "termpg_cut": "TermPG, stops cut",
    "termpg_ignored": "TermPG, ends ignored",
    "oracle": "Oracle (known costs)",
    "oracle_horizon": "Oracle, γ × 0.97",
}

ENV_NAMES = {
    "backseat": "Backseat coins",
    "backseat_passenger": "Backseat passenger",
    "space_invaders": "Space Invaders",
    "seaquest": "Seaquest",
    "breakout": "Breakout",
    "asterix": "Asterix",
    "asterix_middle": "Asterix middle",
    "recommender": "Recommender",
}

# Warm colours for TermPG, cool and grey ones for PG, green for who knows.
COLOURS = {
    "pg": "#5b6478",
    "pg_naive": "#a5adbd",
    "pg_recurrent": "#2f9e9e",
    "pg_recurrent_rs": "#2f9e9e",
    "pg_rs": "#3b6fd4",
    "pg_matched": "#6f5bd0",
    "pg_0.953": "#9db4e8",
    "pg_naive_0.953": "#c9cdd6",
    "pg_0.97": "#7d97d6",
    "termpg": "#d6336c",
    "termpg_rs": "#f08c00",
    "termpg_penalty": "#a61e4d",
    "termpg_horizon": "#9c36b5",
    "oracle": "#2b8a3e",
    "oracle_horizon": "#66a80f",
}
MORE_COLOURS = (
    "#e8590c",
    "#7048e8",
    "#0c8599",
    "#b08900",
    "#5c940d",
    "#1971c2",
    "#9c36b5",
    "#846358",
)


def method_name(row: str) -> str:
    """A row's name for people."""
    return METHOD_NAMES.get(row, row)


def column_name(column: str) -> str:
    """A column's name for people: the environment's, and what is special about it."""
    if column in ENV_NAMES:
        return ENV_NAMES[column]
    for env in sorted(ENV_NAMES, key=len, reverse=True):
        if column.startswith(env + "_"):
            rest = column.removeprefix(env + "_").replace("_", " ")
            game = "Backseat" if env == "backseat" else ENV_NAMES[env]
            return f"{game} {rest}"
    return column


def colours(rows: list[str]) -> dict[str, str]:
    """A colour per row, all different, the same in every figure where they are known."""
    found: dict[str, str] = {}
    spare = iter(MORE_COLOURS * (1 + len(rows) // len(MORE_COLOURS)))
    for row in rows:
        known = COLOURS.get(row)
        found[row] = known if known and known not in found.values() else next(spare)
    return found


def counted(number: int, noun: str) -> str:
    """A number and its noun: 1 environment, 2 environments."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
