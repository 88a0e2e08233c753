"""ARCHITECTURE.md is true: its tree is the tree, its tower is the contract."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "src" / "termdp"
DOCUMENT = (ROOT / "ARCHITECTURE.md").read_text()


def blocks():
    return re.findall(r"```\n(.*?)```", DOCUMENT, re.DOTALL)


def listed():
    """Paths of the modules that the tree names."""
    (tree,) = [block for block in blocks() if block.startswith("src/termdp/")]
    found, package = [], ""
    for line in tree.splitlines()[1:]:
        indent = len(line) - len(line.lstrip())
        if indent == 0:
            break
        if indent == 2:
            name = line.split()[0]
            package = name.rstrip("/") if name.endswith("/") else ""
            found += [] if package else [name]
        else:
            names = line.strip().partition(":")[0].split(", ")
            found += [f"{package}/{name}.py" for name in names]
    return found


def test_the_tree_is_the_tree():
    found = listed()
    real = {str(p.relative_to(SOURCES)) for p in SOURCES.rglob("*.py")}
    real = {name for name in real if not name.endswith(("__init__.py", "__main__.py"))}
    assert len(found) == len(set(found)), "listed twice"
    assert sorted(real - set(found)) == [], "not in ARCHITECTURE.md"
    assert sorted(set(found) - real) == [], "in ARCHITECTURE.md, but no file"


def test_the_tower_is_the_contract():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())
    layers = contracts["tool"]["importlinter"]["contracts"][0]["layers"]
    expected = [set(layer.split(" | ")) for layer in layers]
    (tower,) = [block for block in blocks() if block.startswith("cli ")]
    # What stands first in a line is its layer; words of the explanation do not count.
    for line, names in zip(tower.splitlines(), expected, strict=True):
        assert set(line.split()[: len(names)]) == names, line


def test_unit_tests_mirror_the_sources():
    """`costs/test_fit.py` tests `costs/fit.py`; `test_logs_fit.py` `logs/fit.py`."""
    unit = ROOT / "tests" / "unit"
    for path in unit.rglob("test_*.py"):
        # Python would take a folder `gym` here for the package of that name.
        package = path.parent.relative_to(unit).as_posix().replace("_adapters", "")
        top = package == "."
        modules = SOURCES.glob("*.py") if top else (SOURCES / package).rglob("*.py")
        modules = {module.stem for module in modules}
        name = path.stem.removeprefix("test_")
        assert {name, name.removeprefix(f"{package}_")} & modules, path
