"""The documentation site builds without a warning and names every public name."""

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
MODULES = ("termdp", "termdp.gym", "termdp.sb3", "termdp.tabular")
FROM_ELSEWHERE = re.compile(
    r'<(?:script|img|iframe)[^>]+src="https?://|<link[^>]+rel="stylesheet"[^>]+https?://'
)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    command = [
        sys.executable,
        "-m",
        "mkdocs",
        "build",
        "--strict",
        "--site-dir",
        folder,
    ]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return folder


def test_every_page_is_in_the_site_and_loads_nothing_from_elsewhere(site):
    for page in DOCS.rglob("*.md"):
        path = site / page.relative_to(DOCS).with_suffix("")
        path = path.parent if page.stem == "index" else path
        text = (path / "index.html").read_text()
        assert not FROM_ELSEWHERE.search(text), page.name


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_is_documented(site, module):
    pages = "".join(page.read_text() for page in (site / "api").rglob("index.html"))
    parts = {name.rpartition(".")[2] for name in MODULES[1:]} | {"__version__"}
    for name in importlib.import_module(module).__all__:
        if module == "termdp" and name in parts:
            assert f"termdp.{name}" in pages
        else:
            assert f'id="{module}.{name}"' in pages, f"{module}.{name} is in no page"
