"""What the package depends on: licences, a bill of materials, files with their hashes.

python tools/supply_chain.py licences        refuse GPL and unknown licences
python tools/supply_chain.py sbom FILE       CycloneDX JSON of what is installed here
python tools/supply_chain.py lock            write requirements-dev.lock (needs uv)
python tools/supply_chain.py hashes          fetch what the lock names, compare hashes
"""

import importlib.metadata as metadata
import json
import re
import subprocess
import sys
import tempfile
import tomllib
import uuid
from pathlib import Path

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "requirements-dev.lock"
CONSTRAINTS = ROOT / "constraints.txt"
# Extras that somebody may run; `dev` is for ourselves.
EXTRAS = ("gymnax", "people", "tensorboard", "wandb", "ray", "sb3", "postgres")
ALLOWED = re.compile(
    r"MIT|BSD|Apache|PSF|Python Software Foundation|ISC|MPL|Mozilla|Zlib|0BSD|HPND|CC0|"
    r"Unlicense|LLVM",
    re.IGNORECASE,
)
FORBIDDEN = re.compile(r"(?<!L)GPL|(?<!Lesser )General Public|AGPL|SSPL", re.IGNORECASE)
# Linked to, never changed, and only where somebody asks for PostgreSQL.
LGPL_AT_RUN_TIME = ("psycopg", "psycopg-binary")
# torch comes with CUDA from some places and for CPUs from others: it has no one hash.
UNLOCKED = ("torch", "stable-baselines3")
LOCKED_EXTRAS = ("brax", "docs", "gymnax", "onnx", "people", "dev")


def plain(name: str) -> str:
    """A distribution's name as indexes know it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def project() -> dict:
    """What pyproject.toml says, and the version, which the changelog says."""
    facts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    changes = (ROOT / "CHANGELOG.md").read_text()
    return facts | {"version": re.search(r"(?m)^## (\d[\w.]*)", changes)[1]}


def name_of(requirement: str) -> str:
    """The distribution that a requirement names."""
    return plain(re.match(r"[A-Za-z0-9._-]+", requirement)[0])


def installed() -> dict[str, metadata.Distribution]:
    """All distributions here, by name."""
    return {plain(found.name): found for found in metadata.distributions()}


def closure(requirements: list[str]) -> dict[str, metadata.Distribution]:
    """The distributions that requirements bring, as far as they are installed here."""
    here, found = installed(), {}
    waiting = [name_of(line) for line in requirements]
    while waiting:
        name = waiting.pop()
        if name in found or name not in here or name == "termdp":
            continue
        found[name] = here[name]
        for line in here[name].requires or ():
            if "extra ==" not in line:
                waiting.append(name_of(line))
            elif name == "psycopg":
                waiting.append("psycopg-binary")
    return dict(sorted(found.items()))


def run_time() -> dict[str, metadata.Distribution]:
    """Everything that users may run, extras included."""
    facts = project()
    lines = list(facts["dependencies"])
    for extra in EXTRAS:
        lines += facts["optional-dependencies"][extra]
    return closure(lines)


def licence_of(found: metadata.Distribution) -> str:
    """The licence as the distribution itself says it."""
    facts = found.metadata
    said = facts.get("License-Expression")
    if said:
        return said
    classified = [
        line.split("::")[-1].strip()
        for line in facts.get_all("Classifier") or ()
        if line.startswith("License ::")
    ]
    if classified:
        return " OR ".join(classified)
    return (facts.get("License") or "unknown").strip().splitlines()[0][:80]


def wrong_licences(found: dict[str, metadata.Distribution]) -> list[str]:
    """One line for each distribution that users must not be made to install."""
    wrong = []
    for name, one in found.items():
        licence = licence_of(one)
        if name in LGPL_AT_RUN_TIME and "LGPL" in licence:
            continue
        if FORBIDDEN.search(licence) or not ALLOWED.search(licence):
            wrong.append(f"{name} {one.version}: {licence}")
    return wrong


def bill_of_materials(found: dict[str, metadata.Distribution]) -> dict:
    """CycloneDX 1.6 of the package and what it runs with."""
    facts = project()
    own = f"pkg:pypi/termdp@{facts['version']}"
    direct = {name_of(line) for line in facts["dependencies"]}

    def link(one: metadata.Distribution) -> str:
        return f"pkg:pypi/{plain(one.name)}@{one.version.split('+')[0]}"

    edges = [
        {"ref": own, "dependsOn": [link(found[n]) for n in sorted(direct & {*found})]}
    ]
    for one in found.values():
        below = {name_of(line) for line in one.requires or () if "extra ==" not in line}
        names = sorted(below & {*found})
        edges.append({"ref": link(one), "dependsOn": [link(found[n]) for n in names]})
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid4()}",
        "version": 1,
        "metadata": {
            "component": {
                "type": "library",
                "bom-ref": own,
                "name": "termdp",
                "version": facts["version"],
                "purl": own,
                "licenses": [{"license": {"id": facts["license"]}}],
            }
        },
        "components": [
            {
                "type": "library",
                "bom-ref": link(one),
                "name": one.name,
                "version": one.version,
                "purl": link(one),
                "licenses": [{"license": {"name": licence_of(one)}}],
            }
            for one in found.values()
        ],
        "dependencies": edges,
    }


def locked() -> dict[str, str]:
    """Names and versions in the lock."""
    lines = re.findall(r"^([A-Za-z0-9._-]+)==(\S+) ", LOCK.read_text(), re.MULTILINE)
    return {plain(name): version for name, version in lines}


def wanted() -> list[str]:
    """What the lock is made of: everything for development but `UNLOCKED`."""
    facts = project()
    extras = facts["optional-dependencies"]
    lines = [
        *facts["dependencies"],
        *(line for extra in LOCKED_EXTRAS for line in extras[extra]),
    ]
    return [line for line in lines if name_of(line) not in ("termdp", *UNLOCKED)]


def write_lock() -> None:
    """Let uv look up the hashes of every file of the versions in constraints.txt."""
    pins = CONSTRAINTS.read_text().splitlines()
    with tempfile.TemporaryDirectory() as place:
        asked, pinned = Path(place) / "asked.txt", Path(place) / "pinned.txt"
        asked.write_text("\n".join(wanted()) + "\n")
        kept = [line for line in pins if name_of(line) not in UNLOCKED]
        pinned.write_text("\n".join(kept) + "\n")
        options = ("--generate-hashes", "--no-header", "--no-annotate", "--quiet")
        command = ["uv", "pip", "compile", asked, "-c", pinned, *options]
        subprocess.run(
            [
                *map(str, command),
                "--universal",
                "--python-version",
                "3.11",
                "--output-file",
                LOCK,
            ],
            check=True,
        )
    head = "# Made by `make lock` from constraints.txt; see docs/reliability.md.\n"
    LOCK.write_text(head + LOCK.read_text())


def check_hashes() -> int:
    """Let pip fetch what the lock names and compare the hashes; nothing is installed."""
    options = (
        "--dry-run",
        "--ignore-installed",
        "--require-hashes",
        "--no-deps",
        "--quiet",
    )
    command = [sys.executable, "-m", "pip", "install", *options, "-r", str(LOCK)]
    return subprocess.run(command, check=False).returncode


def main() -> int:
    """Do what the first argument says."""
    match sys.argv[1:]:
        case ["licences"]:
            found = run_time()
            wrong = wrong_licences(found)
            print("\n".join(wrong) or f"licences: {len(found)} packages are fine")
            return 1 if wrong else 0
        case ["sbom", path]:
            content = bill_of_materials(run_time())
            Path(path).write_text(json.dumps(content, indent=2) + "\n")
            return 0
        case ["lock"]:
            write_lock()
            return 0
        case ["hashes"]:
            return check_hashes()
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
