"""A plain install has everything that the package imports."""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "src" / "termdp"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
# Where a package is called otherwise than its distribution.
DISTRIBUTIONS = {
    "PIL": "pillow",
    "stable_baselines3": "stable-baselines3",
    "tomli_w": "tomli-w",
}
# Imported with jax, which needs it.
OF_JAX = {"jaxlib"}


def names(requirements):
    return {re.split(r"[\[<>=!~ ]", line)[0].lower() for line in requirements}


PLAIN = names(PROJECT["dependencies"]) | OF_JAX
EXTRAS = PROJECT["optional-dependencies"]
# Parts that only somebody with an extra imports.
PARTS = {"people": "people", "onnx_graph.py": "onnx", "sb3": "sb3"}


def imported(path, only_top):
    tree = ast.parse(path.read_text())
    nodes = tree.body if only_top else ast.walk(tree)
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield node.module


def distributions(path, only_top):
    packages = {name.split(".")[0] for name in imported(path, only_top)}
    packages -= set(sys.stdlib_module_names) | {"termdp"}
    return {DISTRIBUTIONS.get(name, name).lower() for name in packages}


@pytest.mark.parametrize(
    "path", sorted(SOURCES.rglob("*.py")), ids=lambda p: str(p.relative_to(SOURCES))
)
def test_imports_are_declared(path):
    extra = PARTS.get(path.relative_to(SOURCES).parts[0])
    declared = PLAIN | names(EXTRAS[extra]) if extra else PLAIN
    assert distributions(path, only_top=True) <= declared
    anything = declared.union(*map(names, EXTRAS.values()))
    assert distributions(path, only_top=False) <= anything


def test_nothing_imports_gymnax():
    found = [p for p in SOURCES.rglob("*.py") if "gymnax" in distributions(p, False)]
    assert found == []


def test_a_plain_install_is_enough_to_list_and_to_train():
    optional = set().union(*map(names, EXTRAS.values())) - PLAIN - {"termdp"}
    code = (
        "import sys\n"
        "class Missing:\n"
        "    def find_spec(self, name, *_):\n"
        f"        if name.split('.')[0] in {sorted(optional)}:\n"
        "            raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, Missing())\n"
        "import termdp, termdp.gym, termdp.tabular\n"
        "from termdp.cli import main\n"
        "main(['envs', '--json'])\n"
        "termdp.train, termdp.load_observer\n"
        "termdp.make('backseat_passenger')\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)
