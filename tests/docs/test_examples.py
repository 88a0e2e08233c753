"""What the documents show works: README's Python, docstring examples, links."""

import doctest
import importlib
import re
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).parents[2]
DOCUMENTED = (
    "termdp.termination",
    "termdp.observer",
    "termdp.advantages",
    "termdp.registry",
    "termdp.wrappers.observe",
    "termdp.gym.observer_wrapper",
    "termdp.runs.train",
    "termdp.runs.agent",
    "termdp.runs.evaluate",
    "termdp.sb3.termpg",
    "termdp.logs.fit",
    "termdp.logs.memory",
)


def python_blocks(name):
    return re.findall(r"```python\n(.*?)```", (ROOT / name).read_text(), re.DOTALL)


def test_readme_examples_run():
    blocks = python_blocks("README.md")
    assert len(blocks) >= 2
    names = {}
    for block in blocks:
        exec(compile(block, "README.md", "exec"), names)
    assert names["info"]["stopped"].dtype == bool


PAGES = (
    "training",
    "choosing_an_observer",
    "own_environments",
    "export",
    "logs",
    "sb3",
)


@pytest.mark.parametrize("name", [f"docs/{page}.md" for page in PAGES])
def test_examples_of_the_pages_run(name, tmp_path, monkeypatch):
    # Networks this small only wait for torch's other threads.
    torch.set_num_threads(1)
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in python_blocks(name):
        exec(compile(block, name, "exec"), names)


@pytest.mark.parametrize("name", DOCUMENTED)
def test_docstring_examples_run(name):
    result = doctest.testmod(importlib.import_module(name))
    assert result.attempted > 0
    assert result.failed == 0


def test_links_between_documents_lead_somewhere():
    documents = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]
    for document in documents:
        for target in re.findall(r"\]\(([^)#]+)\)", document.read_text()):
            if not target.startswith(("http://", "https://")):
                assert (document.parent / target).exists(), f"{document.name}: {target}"
