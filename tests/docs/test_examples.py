"""What the documents show works: README's Python, docstring examples, links."""

import doctest
import importlib
import re
from pathlib import Path

import pytest
import torch

pytestmark = pytest.mark.slow

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


BLOCK = re.compile(
    r"(?:<!-- not run: (?P<reason>[^>]*) -->\s*)?^```python\n(?P<code>.*?)```",
    re.DOTALL | re.MULTILINE,
)
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def python_blocks(path):
    """The code of a document that runs; what does not run says why, just before it."""
    found = [match.groupdict() for match in BLOCK.finditer(path.read_text())]
    return [block["code"] for block in found if not block["reason"]]


WITH_CODE = [str(path.relative_to(ROOT)) for path in DOCUMENTS if python_blocks(path)]


def test_code_that_does_not_run_says_why():
    for path in DOCUMENTS:
        for match in BLOCK.finditer(path.read_text()):
            assert match["reason"] is None or len(match["reason"].split()) > 2, path


@pytest.mark.parametrize("name", WITH_CODE)
def test_python_of_the_documents_runs(name, tmp_path, monkeypatch):
    # Networks this small only wait for torch's other threads.
    torch.set_num_threads(1)
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in python_blocks(ROOT / name):
        exec(compile(block, name, "exec"), names)


@pytest.mark.parametrize("name", DOCUMENTED)
def test_docstring_examples_run(name):
    result = doctest.testmod(importlib.import_module(name))
    assert result.attempted > 0
    assert result.failed == 0


def test_links_between_documents_lead_somewhere():
    for document in [*ROOT.glob("*.md"), *DOCUMENTS, *(ROOT / "results").glob("*.md")]:
        for target in re.findall(r"\]\(([^)#]+)\)", document.read_text()):
            if not target.startswith(("http://", "https://")):
                assert (document.parent / target).exists(), f"{document.name}: {target}"
