"""`termdp serve`: people drive, ride along and stop agents in a browser."""

import sys
from dataclasses import dataclass
from pathlib import Path

import tyro

from termdp.people.extra import needs_people_packages


@dataclass(frozen=True)
class Args:
    """Serve the web app, where people drive, ride along, review rides and see results.

    The first start prints an admin link and an invite link. To choose the admin token
    yourself, set the environment variable TERMDP_ADMIN_TOKEN.

    Example: termdp serve --db people.db --agents runs
    """

    db: str = "people.db"
    """File or URL of the store (postgresql+psycopg://user@host/name)."""
    host: str = "127.0.0.1"
    """Address to listen on; 0.0.0.0 lets in everybody who can reach this machine."""
    port: int = 8040
    """Port to listen on."""
    agents: Path | None = None
    """Folder with runs whose agents drive; without it, scripted drivers drive."""
    steps: int = 250
    """Maximum length of a ride on the Ride page, in steps."""
    trusted_proxy: tuple[str, ...] = ()
    """Addresses or networks of reverse proxies in front of this server. Their
    X-Forwarded-For header is trusted; everybody else's is ignored."""
    improve: float | None = None
    """Minutes between rounds in which a driver learns from new stops, in a separate
    process (docs/improve.md); without it there are no rounds."""
    improve_folder: Path = Path("improve")
    """Folder for the results of these rounds."""
    workers: int = 1
    """Server processes; use PostgreSQL for more than one (docs/people_server.md)."""
    token_days: float = 30
    """How many days an invite link works, and the login made with it."""
    no_tokens: tyro.conf.FlagCreatePairsOff[bool] = False
    """Let anybody join without an invite; only possible on this machine."""


@needs_people_packages()
def run(args: Args) -> None:
    """Serve until interrupted."""
    from termdp.people.server.app import Settings
    from termdp.people.server.connections import to_networks
    from termdp.people.server.improver import check_minutes, improving
    from termdp.people.server.serving import Opening, plain_http_warning, serve

    if not 1 <= args.steps <= 2000:
        raise ValueError(f"expected --steps from 1 to 2000, got {args.steps}")
    if not 0 < args.token_days <= 3650:
        raise ValueError(
            f"expected --token-days above 0 and at most 3650, got {args.token_days:g}"
        )
    if args.improve is not None:
        check_minutes(args.improve)

    def on_start(opening: Opening) -> None:
        print(f"Backseat Driver: {opening.url}  (press Ctrl-C to stop)")
        if opening.admin_token is not None:
            print(
                f"  admin link, shown once: {opening.url}/admin#{opening.admin_token}"
            )
        if opening.invite is not None:
            print(
                f"  your invite link, works once: {opening.url}/join#{opening.invite}"
            )
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
