"""The command line: `termdp COMMAND …`, one module per command.

A command's module has a dataclass `Args`, whose docstring (with an example) is the help
text, and a function `run(args)`. Bad input, raised anywhere as `ValueError`, becomes one
sentence on standard error and exit code 2. A module with its own table `COMMANDS` is a
group: `termdp studies export …` is the module `studies_export`.
"""

import importlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import tyro

from termdp.provenance import version_of

# name -> what it is for; the module is termdp.cli.<name>
COMMANDS = {
    "envs": "list the environments",
    "methods": "list the methods",
    "agents": "list the trained agents that come with the package",
    "train": "train a method on an environment",
    "eval": "play fresh episodes with a trained policy",
    "video": "film one episode of a trained policy",
    "export": "write a trained policy as an ONNX file",
    "bench": "run a suite of experiments",
    "fit": "fit an observer to a log of sessions and their stops",
    "report": "make a page about a suite's results",
    "tabular": "learn a small TerMDP with guarantees and measure the regret",
    "demo": "train three methods and make a page that compares them",
    "serve": "let people drive, ride along and stop agents, in a browser",
    "studies": "studies with people: create, export, import, fit, forget, back up",
}

COMPILING = (
    *("train", "eval", "video", "export", "demo", "bench", "fit"),
    "studies improve",
)


def main(argv: Sequence[str] | None = None) -> None:
    """Run one command; bad input ends with one sentence and exit code 2."""
    try:
        try:
            _dispatch(argv)
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        # The reader closed the pipe (`termdp … | head`). That is no error, and Python
        # must not write to it again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)


def _dispatch(argv: Sequence[str] | None) -> None:
    words = list(sys.argv[1:] if argv is None else argv)
    if not words or words[0] in ("-h", "--help"):
        print(_overview())
        return
    if words[0] == "--version":
        print(f"termdp {version_of('termdp')}")
        return
    name, rest = words[0], words[1:]
    if name not in COMMANDS:
        _fail(f"expected a command ({', '.join(COMMANDS)}), got {name!r}")
    _keep_compiled_programs(name)
    command = importlib.import_module(f"termdp.cli.{name}")
    if hasattr(command, "COMMANDS"):
        name, rest = _member_of_group(name, command.COMMANDS, rest)
        _keep_compiled_programs(name)
        command = importlib.import_module(f"termdp.cli.{name.replace(' ', '_')}")
    args = tyro.cli(command.Args, prog=f"termdp {name}", args=rest)
    try:
        command.run(args)
    except BrokenPipeError:
        raise
    except (ValueError, OSError, MemoryError) as error:
        if os.environ.get("TERMDP_TRACEBACK"):
            raise
        is_memory = isinstance(error, MemoryError)
        _fail(f"expected to need less memory: {error}" if is_memory else str(error))
    except KeyboardInterrupt:
        sys.exit(130)


def _member_of_group(
    group: str, commands: dict[str, str], words: list[str]
) -> tuple[str, list[str]]:
    """The full name of a command in a group, and the command's arguments."""
    if not words or words[0] in ("-h", "--help"):
        print(_overview(f"{group} ", commands))
        sys.exit(0)
    if words[0] not in commands:
        _fail(
            f"expected a command of {group} ({', '.join(commands)}), got {words[0]!r}"
        )
    return f"{group} {words[0]}", words[1:]


def _keep_compiled_programs(name: str) -> None:
    """Compile once per machine: JAX keeps programs on disk between commands."""
    if name in COMPILING:
        folder = Path.home() / ".cache" / "termdp" / "jax"
        os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(folder))


def _overview(prefix: str = "", commands: dict[str, str] = COMMANDS) -> str:
    width = max(map(len, commands))
    lines = [f"  {name:<{width}}  {what}" for name, what in commands.items()]
    example = next(iter(commands))
    return "\n".join(
        [
            f"usage: termdp {prefix}COMMAND …",
            "",
            "Reinforcement learning when somebody outside can end the episode.",
            "",
            *lines,
            "",
            f"`termdp {prefix}COMMAND --help` explains one command; example: "
            f"termdp {prefix}{example} --help",
        ]
    )


def _fail(sentence: str) -> None:
    print(f"termdp: {sentence}", file=sys.stderr)
    sys.exit(2)
