"""A hook of mkdocs: pages of the site may link to files of the repository.

Pages link to each other as they do in the repository, `../results/…` included. Files
outside docs/ that some page links to are copied to `repository/…` of the site, and the
links are changed to lead there. So the site needs nothing else.
"""

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
COPIES = "repository"
ALWAYS = (
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "ARCHITECTURE.md",
    "SECURITY.md",
    "examples/README.md",
)
LINK = re.compile(r"(\]\()([^)\s#:]+)((?:#[^)]*)?\))")


def home(source: str) -> str:
    """A page's path in the repository, from its path in the site."""
    inside = source.removeprefix(COPIES + "/")
    return inside if inside != source else f"docs/{source}"


def address(path: str) -> str:
    """A file's path in the site, from its path in the repository."""
    inside = path.removeprefix("docs/")
    return inside if inside != path else f"{COPIES}/{path}"


def target(page: str, link: str) -> str:
    """The file of the repository that a link on one of its pages leads to."""
    path = posixpath.normpath(posixpath.join(posixpath.dirname(page), link))
    if (ROOT / path).is_dir() and (ROOT / path / "README.md").exists():
        return f"{path}/README.md"
    return path


def linked_files(pages: list[str]) -> Iterator[str]:
    """Files outside docs/ that pages link to, and those that these link to, and so on."""
    seen, waiting = set(pages), list(pages)
    while waiting:
        page = waiting.pop()
        for _, link, _ in LINK.findall((ROOT / page).read_text()):
            path = target(page, link)
            if path in seen or path.startswith("docs/") or not (ROOT / path).is_file():
                continue
            seen.add(path)
            yield path
            if path.endswith(".md"):
                waiting.append(path)


def on_files(files: Files, config: dict) -> Files:
    """Add what pages link to."""
    pages = [home(page.src_uri) for page in files.documentation_pages()]
    for path in (*ALWAYS, *linked_files([*pages, *ALWAYS])):
        content = (ROOT / path).read_bytes()
        files.append(File.generated(config, f"{COPIES}/{path}", content=content))
    return files


def on_page_markdown(markdown: str, page, **_: object) -> str:
    """Let links lead to the site's copies."""
    source = page.file.src_uri
    here = posixpath.dirname(source)

    def moved(match: re.Match) -> str:
        before, link, after = match.groups()
        goal = address(target(home(source), link))
        return before + posixpath.relpath(goal, here or ".") + after

    return LINK.sub(moved, markdown)
