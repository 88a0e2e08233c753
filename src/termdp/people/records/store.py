"""The store: studies, supervisors, rides, what was shown to whom, and their stops.

Every method is one transaction. A method that writes returns when its change is on disk.
"""

from termdp.people.records.database import Database, UnreachableError
from termdp.people.records.showing_records import Showing, ShowingRecords, Verdict
from termdp.people.records.study_records import (
    ConflictError,
    NotFoundError,
    StudyRecords,
    to_ride,
)

__all__ = [
    "DEFAULT_DB",
    "ConflictError",
    "NotFoundError",
    "Showing",
    "Store",
    "UnreachableError",
    "Verdict",
    "to_ride",
]

DEFAULT_DB = "people.db"


class Store(StudyRecords, ShowingRecords):
    """Studies and all that belongs to them, in a database.

    Example:
        >>> store = Store.open("people.db")  # doctest: +SKIP
        >>> study = store.create_study("coins")  # doctest: +SKIP
    """

    def __init__(self, database: Database):
        self.database = database

    @classmethod
    def open(cls, url: str = DEFAULT_DB) -> "Store":
        """Open a store; a new one is created, an old one brought up to date.

        Args:
            url: a file for SQLite, or a URL (`postgresql+psycopg://user@host/name`).
        """
        return cls(Database.open(url))

    def close(self) -> None:
        """Give back all connections."""
        self.database.close()
