"""`termdp serve`: people drive, ride along and stop agents, in a browser."""

import sys
from dataclasses import dataclass
from pathlib import Path

import tyro

from termdp.people.extra import needs_people_packages


@dataclass(frozen=True)
class Args:
    """Serve Backseat Driver to people: drive, ride along, review, see the results.

    The first start prints an admin token and an invite link. To choose the token, set
    the environment variable TERMDP_ADMIN_TOKEN.

    Example: termdp serve --db people.db --agents runs
    """

    db: str = "people.db"
    """File or URL of the store (postgresql+psycopg://user@host/name)."""
    host: str = "127.0.0.1"
    """Address to listen on; 0.0.0.0 for everybody who can reach this machine."""
    port: int = 8040
    """Port to listen on."""
    agents: Path | None = None
    """Folder with runs of Backseat Driver; scripted drivers unless given."""
    steps: int = 250
    """Longest ride on the Ride page, in steps."""
    trusted_proxy: tuple[str, ...] = ()
    """Addresses or networks of reverse proxies in front of this server. Only their
    X-Forwarded-For headers are believed."""
    improve: float | None = None
    """Minutes between rounds in which a driver learns from new stops, in a separate
    process (docs/improve.md); no rounds unless given."""
    improve_folder: Path = Path("improve")
    """Folder for what is learned in these rounds."""
    workers: int = 1
    """Server processes; more than one needs PostgreSQL (docs/people_server.md)."""
    token_days: float = 30
    """How many days an invite link and its login work."""
    no_tokens: tyro.conf.FlagCreatePairsOff[bool] = False
    """Let anybody join without an invite; allowed only on a loopback address."""


@needs_people_packages()
def run(args: Args) -> None:
    """Serve until interrupted."""
    from termdp.people.server.app import Settings
    from termdp.people.server.connections import to_networks
    from termdp.people.server.improver import check_minutes, improving
    from termdp.people.server.serving import Opening, plain_http_warning, serve

    if not 1 <= args.steps <= 2000:
        raise ValueError(f"expected 1 to 2000 steps a ride, got {args.steps}")

    if not 0 < args.token_days <= 3650:
        raise ValueError(f"expected --token-days up to 3650, got {args.token_days}")

    if args.improve is not None:
        check_minutes(args.improve)

    def on_start(opening: Opening) -> None:
        print(f"Backseat Driver: {opening.url}  (Ctrl-C to stop)")
        if opening.admin_token is not None:
            print(
                f"  admin, shown this once: {opening.url}/admin#{opening.admin_token}"
            )
        if opening.invite is not None:
            print(f"  your invite, works once: {opening.url}/join#{opening.invite}")
        sys.stdout.flush()
        if warning := plain_http_warning(args.host):
            print(warning, file=sys.stderr, flush=True)

    settings = Settings(
        tokens=not args.no_tokens,
        steps=args.steps,
        token_days=args.token_days,
        proxies=tuple(to_networks(args.trusted_proxy)),
    )
    serve(
        args.db,
        args.host,
        args.port,
        args.agents,
        settings,
        args.workers,
        on_start,
        improving(args.db, args.improve, args.improve_folder),
    )
