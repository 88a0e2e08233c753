"""Fail when a source file grows past 700 lines or a function past 60.

Both limits are for readers: a file has one subject, a function one idea.
"""

import ast
import subprocess
import sys
from pathlib import Path

MAX_FILE_LINES = 700
MAX_FUNCTION_LINES = 60
FORBIDDEN_NAMES = {"utils.py", "common.py", "misc.py", "helpers.py"}


def code_lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of a function without its docstring."""
    body = node.body
    has_docstring = ast.get_docstring(node) is not None
    first = body[1] if has_docstring and len(body) > 1 else body[0]
    return (node.end_lineno or node.lineno) - first.lineno + 1


def problems(path: Path) -> list[str]:
    """What is too long in one file, and whether its name says nothing."""
    text = path.read_text()
    found = []
    if len(text.splitlines()) > MAX_FILE_LINES:
        found.append(f"{path}: {len(text.splitlines())} lines > {MAX_FILE_LINES}")
    if path.name in FORBIDDEN_NAMES:
        found.append(f"{path}: a name that does not say what is inside")
    for node in ast.walk(ast.parse(text)):
        if (
            isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            and (lines := code_lines(node)) > MAX_FUNCTION_LINES
        ):
            found.append(
                f"{path}:{node.lineno}: {node.name} has {lines} lines > "
                f"{MAX_FUNCTION_LINES}"
            )
    return found


def main() -> int:
    """Check every Python file that git knows or would add."""
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.py"],
        check=True,
        capture_output=True,
        text=True,
    )
    paths = [Path(line) for line in listing.stdout.split() if Path(line).exists()]
    found = [problem for path in paths for problem in problems(path)]
    print("\n".join(found) if found else f"sizes: {len(paths)} files are fine")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
