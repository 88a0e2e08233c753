"""Versions and commits with and without an installed package or a repository."""

import os
import re
import subprocess
from importlib import metadata
from pathlib import Path

import pytest

from termdp import provenance

ROOT = Path(__file__).parents[2]


def declared():
    """The version that is cited; it is also the newest heading of the changelog."""
    (line,) = re.findall(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(), re.M)
    return line


@pytest.fixture
def not_installed(monkeypatch):
    def missing(package):
        raise metadata.PackageNotFoundError(package)

    monkeypatch.setattr(metadata, "version", missing)


def test_bare_sources_know_their_version(not_installed, monkeypatch, tmp_path):
    assert provenance.version_of("termdp") == declared()
    assert provenance.version_of("numpy") == "unknown"
    monkeypatch.setattr(provenance, "_SOURCES", tmp_path / "src" / "termdp")
    assert provenance.version_of("termdp") == "unknown"


def test_versions_and_hardware_are_plain_words():
    assert set(provenance.versions()) >= {"termdp", "jax", "numpy", "python", "device"}
    assert provenance.hardware()["devices"] >= 1


def test_the_commit_is_the_repositorys_or_the_environments(monkeypatch, tmp_path):
    head = subprocess.run(
        ["git", "-C", ROOT, "rev-parse", "HEAD"], capture_output=True, text=True
    )
    if head.returncode == 0:
        found = provenance.commit().removesuffix("+")
        assert len(found) >= 12
        assert head.stdout.startswith(found)
    monkeypatch.setattr(provenance, "_SOURCES", tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    monkeypatch.delenv("TERMDP_COMMIT", raising=False)
    assert provenance.commit() == "unknown"
    monkeypatch.setenv("TERMDP_COMMIT", "abc123")
    assert provenance.commit() == "abc123"


def test_asking_for_the_commit_writes_nothing(monkeypatch, tmp_path):
    """Git's index must not be rewritten by every run that begins."""
    me = ("-c", "user.name=me", "-c", "user.email=me@here")

    def git(*words):
        subprocess.run(["git", "-C", tmp_path, *me, *words], check=True)

    git("init", "--quiet")
    (tmp_path / "a").write_text("a")
    git("add", "a")
    git("commit", "--quiet", "-m", "first")
    os.utime(tmp_path / "a", (1, 1))  # touched: the index is out of date
    before = (tmp_path / ".git" / "index").stat()
    monkeypatch.setattr(provenance, "_SOURCES", tmp_path)
    assert len(provenance.commit()) == 12
    assert (tmp_path / ".git" / "index").stat().st_ino == before.st_ino
    (tmp_path / "a").write_text("b")
    assert provenance.commit().endswith("+")
