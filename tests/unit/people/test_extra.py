"""Without the packages of the extra `people`: what still works, and what is said."""

import json
import subprocess
import sys

import pytest

from termdp.people.extra import PACKAGES, needs_people_packages

# Runs commands with the packages blocked; prints exit codes and what was said.
SCRIPT = """
import contextlib, io, json, sys

class Blocked:
    def find_spec(name, path=None, target=None):
        if name in {packages!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Blocked)
import termdp
import termdp.people.models.fitting, termdp.people.server.client
import termdp.people.simulated.simulation
termdp.train, termdp.make, termdp.load_observer
from termdp.cli import main
found = []
for words in {commands!r}:
    out, err = io.StringIO(), io.StringIO()
    code = 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main(words)
        except SystemExit as stop:
            code = stop.code
    found.append((words, code or 0, err.getvalue()))
print(json.dumps(found))
"""


def without_packages(folder, commands):
    script = SCRIPT.format(packages=PACKAGES, commands=commands)
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=folder
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
def test_a_plain_install_says_what_is_missing(tmp_path):
    helped = [["studies", "--help"], ["serve", "--help"]]
    helped += [["studies", "create", "--help"], ["studies", "fit", "--help"]]
    refused = [
        ["serve"],
        ["studies", "create", "a"],
        ["studies", "list"],
        ["studies", "rides", "a"],
        ["studies", "simulate", "a"],
        ["studies", "export", "a", "a.parquet"],
        ["studies", "import", "a.parquet"],
        ["studies", "fit", "a"],
    ]
    other = ["studies", "fit", "none.parquet"]
    found = without_packages(tmp_path, [*helped, *refused, other])
    for words, code, said in found[: len(helped)]:
        assert (code, said) == (0, ""), words
    for words, code, said in found[len(helped) : -1]:
        assert code == 2, words
        assert said.count("\n") == 1 and said.endswith(
            "is not installed: pip install 'termdp[people]'\n"
        )
    assert "no such file" in found[-1][2]  # an exported study needs none of them
    assert list(tmp_path.iterdir()) == []


def test_other_missing_packages_are_not_explained_away():
    with pytest.raises(ModuleNotFoundError), needs_people_packages():
        import termdp.no_such_module  # noqa: F401
