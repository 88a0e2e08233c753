"""Who did what to a store, and when; reviews are not logged.

An entry is written in the same transaction as the change it describes, so there is
never one without the other. It holds no network addresses. When somebody withdraws,
their name is removed from the entries about them.
"""

import getpass
from typing import Any

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from termdp.people.records.showings import now_ms
from termdp.people.records.tables import AuditEntry

ADMIN = "admin"
WITHDRAWN = "(withdrawn)"


def this_user() -> str:
    """The user who runs this program, for entries made by commands."""
    try:
        return f"{getpass.getuser()} (command)"
    except (KeyError, OSError):  # a user without a name, as in some containers
        return "somebody (command)"


def note(
    session: Session,
    who: str,
    what: str,
    study: str | None = None,
    person: str | None = None,
) -> None:
    """Write an entry in a transaction of the caller."""
    entry = AuditEntry(at_ms=now_ms(), who=who, what=what, study=study, person=person)
    session.add(entry)


def entries(session: Session, study: str | None = None) -> list[dict[str, Any]]:
    """What was done, newest first; to one study if given."""
    query = select(AuditEntry).order_by(AuditEntry.id.desc())
    if study is not None:
        query = query.where(AuditEntry.study == study)
    names = ("at_ms", "who", "what", "study", "person")
    return [{n: getattr(row, n) for n in names} for row in session.scalars(query)]


def forget_name(session: Session, study: str, person: str) -> None:
    """Take a person's name out of the entries about them."""
    session.execute(
        update(AuditEntry)
        .where(AuditEntry.study == study, AuditEntry.person == person)
        .values(person=WITHDRAWN)
    )
