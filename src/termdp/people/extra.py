"""The packages of the extra `people`, which the store and the server need."""

from functools import partial

from termdp.extras import needs

PACKAGES = ("sqlalchemy", "starlette", "uvicorn")

needs_people_packages = partial(needs, "people", *PACKAGES)
