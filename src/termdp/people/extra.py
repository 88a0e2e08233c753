"""The packages of the extra `people`, which the store and the server need."""

import contextlib
from collections.abc import Iterator

PACKAGES = ("sqlalchemy", "starlette", "uvicorn")


@contextlib.contextmanager
def needs_people_packages() -> Iterator[None]:
    """Name the fix when one of them is missing; a `with` block or a decorator."""
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in PACKAGES:
            raise
        raise ValueError(
            f"expected the package {package}, but it is not installed: "
            "pip install 'termdp[people]'"
        ) from error
