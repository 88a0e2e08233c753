"""What comes with the package: licences, versions without known holes, hashes."""

import importlib.util
import itertools
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location(
        "supply_chain", ROOT / "tools" / "supply_chain.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_no_gpl_at_run_time(tool):
    found = tool.run_time()
    assert {"jax", "numpy", "starlette", "ray", "psycopg"} <= set(found)
    assert tool.wrong_licences(found) == []
    assert "minatar" not in found and "codespell" not in found


@pytest.mark.parametrize("name", ["minatar", "codespell"])
def test_what_only_tests_may_use_is_recognised(tool, name):
    (wrong,) = [w for w in tool.wrong_licences(tool.closure([name])) if name in w]
    assert "GPL" in wrong


# The first version without the advisories that were known when it was written here.
LEAST = {
    "jinja2": "3.1.6",  # CVE-2025-27516
    "pillow": "11.3",  # CVE-2024-28219, CVE-2025-48379
    "pyarrow": "14.0.1",  # CVE-2023-47248
    "starlette": "0.49.1",  # CVE-2024-47874, CVE-2025-54121, CVE-2025-62727
    "h11": "0.16",  # CVE-2025-43859
    "ray": "2.52",  # CVE-2025-62593
}


def as_numbers(version):
    return [int(part) for part in version.split(".")]


def test_lower_bounds_have_no_known_advisory(tool):
    facts = tool.project()
    extras = facts["optional-dependencies"].values()
    lines = [*facts["dependencies"], *itertools.chain.from_iterable(extras)]
    bounds = {}
    for line in lines:
        found = re.search(r"[>=]=([0-9.]+)", line)
        if found:
            bounds.setdefault(tool.name_of(line), []).append(found[1])
    for name, least in LEAST.items():
        assert bounds[name], name
        for bound in bounds[name]:
            assert as_numbers(bound) >= as_numbers(least), (name, bound)


def test_the_lock_is_that_of_the_constraints(tool):
    pins = dict(
        line.split("==")
        for line in tool.CONSTRAINTS.read_text().split()
        if "==" in line
    )
    pins = {tool.plain(name): version for name, version in pins.items()}
    locked = tool.locked()
    assert set(map(tool.name_of, tool.wanted())) <= set(locked)
    assert {n: v for n, v in locked.items() if pins.get(n, v) != v} == {}
    text = tool.LOCK.read_text()
    entries = re.split(r"^(?=[A-Za-z0-9])", text, flags=re.MULTILINE)[1:]
    assert len(entries) == len(locked) > 100
    assert all("--hash=sha256:" in entry for entry in entries)


def test_the_bill_of_materials_names_everything(tool, tmp_path):
    out = tmp_path / "termdp.cdx.json"
    words = [sys.executable, str(ROOT / "tools" / "supply_chain.py"), "sbom", str(out)]
    subprocess.run(words, check=True)
    bill = json.loads(out.read_text())
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    links = [part["bom-ref"] for part in bill["components"]]
    assert len(links) == len(set(links)) == len(tool.run_time())
    assert all(part["licenses"] for part in bill["components"])
    known = {*links, bill["metadata"]["component"]["bom-ref"]}
    for edge in bill["dependencies"]:
        assert {edge["ref"], *edge["dependsOn"]} <= known
    (own,) = [
        e for e in bill["dependencies"] if e["ref"].startswith("pkg:pypi/termdp@")
    ]
    assert any(link.startswith("pkg:pypi/jax@") for link in own["dependsOn"])
