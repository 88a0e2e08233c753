"""Packages that a plain install lacks: the error names the extra that installs them."""

import contextlib
from collections.abc import Iterator


class MissingPackageError(ImportError, ValueError):
    """An import error that the command line prints as one sentence."""


@contextlib.contextmanager
def needs(extra: str, *packages: str) -> Iterator[None]:
    """If a package is missing, say which extra installs it; a block or a decorator.

    Args:
        extra: the extra of termdp that installs the packages.
        *packages: their import names.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in packages:
            raise
        raise MissingPackageError(
            f"expected the package {package}, but it is not installed: "
            f"pip install 'termdp[{extra}]'"
        ) from error
