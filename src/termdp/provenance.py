"""Where results come from: versions, commit, machine.

Works for an installed package and for bare sources on PYTHONPATH.
"""

import os
import platform
import re
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

_SOURCES = Path(__file__).parent
_UNKNOWN = "unknown"
DEPENDENCIES = ("jax", "flax", "optax", "numpy")


def version_of(package: str) -> str:
    """The version of a package; ours is known even if it is not installed."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return _version_in_sources() if package == "termdp" else _UNKNOWN


def _version_in_sources() -> str:
    """The first heading of the changelog, as pyproject.toml has it."""
    try:
        text = (_SOURCES.parents[1] / "CHANGELOG.md").read_text()
    except OSError:
        return _UNKNOWN
    found = re.search(r"^## (\d[\w.]*)", text, re.MULTILINE)
    return found[1] if found else _UNKNOWN


def versions() -> dict[str, str]:
    """Versions of what the results depend on, and the device."""
    import jax

    device = jax.devices()[0]
    return {name: version_of(name) for name in ("termdp", *DEPENDENCIES)} | {
        "python": platform.python_version(),
        "device": f"{device.platform} {device.device_kind}",
    }


def hardware() -> dict[str, Any]:
    """The parts of the machine that decide its speed."""
    import jax

    devices = jax.devices()
    return {
        "platform": devices[0].platform,
        "device": devices[0].device_kind,
        "devices": len(devices),
        "cpus": os.cpu_count(),
        "machine": platform.machine(),
        "system": platform.system(),
    }


def commit() -> str:
    """The commit of the sources, with `+` if they were changed since.

    Without a git repository around the sources, TERMDP_COMMIT if it is set.
    """
    try:
        found = _git("rev-parse", "--short=12", "HEAD")
        changed = _git("status", "--porcelain", "--untracked-files=no")
        return f"{found}+" if changed else found
    except (OSError, subprocess.SubprocessError):
        return os.environ.get("TERMDP_COMMIT", _UNKNOWN)


def _git(*words: str) -> str:
    """The output of git, which must not rewrite its index here."""
    found = subprocess.run(
        ["git", "--no-optional-locks", "-C", str(_SOURCES), *words],
        capture_output=True,
        text=True,
        timeout=10,
        check=True,
    )
    return found.stdout.strip()
