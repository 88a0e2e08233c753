"""The server's interface from Python: what the pages do, for programs.

It needs only the standard library. A request whose connection breaks is sent again.
Every stop has an id, so one that arrives twice counts once.
"""

import http.client
import json
import secrets
import time
from typing import Any
from urllib.parse import urlsplit

# A restarted server is back within this many attempts (about 20 seconds).
RETRIES = 14
TIMEOUT_SECONDS = 30.0
MAX_WAIT_SECONDS = 5.0


class RequestRefusedError(ValueError):
    """The server understood and said no; `status` is the HTTP status."""

    def __init__(self, status: int, sentence: str):
        super().__init__(sentence)
        self.status = status


class Client:
    """One supervisor, or the admin. Not for use by several threads at once.

    Args:
        url: the server's address, such as `http://127.0.0.1:8040`.
        token: a supervisor's (from `join`) or the admin's.

    Example:
        >>> client = Client("http://127.0.0.1:8040")  # doctest: +SKIP
        >>> client.join("the invite's token")  # doctest: +SKIP
        >>> while ride := client.next_ride():  # doctest: +SKIP
        ...     client.finish(ride["showing"])
    """

    def __init__(self, url: str, token: str | None = None):
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(
                f"expected an address such as http://host:8040, got {url!r}"
            )
        kind = (
            http.client.HTTPSConnection
            if parts.scheme == "https"
            else http.client.HTTPConnection
        )
        self._connection = kind(parts.hostname, parts.port, timeout=TIMEOUT_SECONDS)
        self.token = token

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    # Supervisors

    def join(self, invite: str) -> str:
        """Agree to the consent text and join; returns the token and keeps it."""
        text = self.request("POST", "/api/invite", {"invite": invite})
        body = {
            "invite": invite,
            "nonce": secrets.token_urlsafe(24),
            "consent_hash": text["consent_hash"],
        }
        self.token = str(self.request("POST", "/api/join", body)["token"])
        return self.token

    def me(self) -> dict[str, Any]:
        """Name, study, progress."""
        return self.request("GET", "/api/me")

    def next_ride(self) -> dict[str, Any] | None:
        """The next ride to review: `showing`, `actions` ("0120…"), `cars`, `coins`.

        Other games have `frames` and `shapes` instead of cars and coins; see
        docs/people_http.md. None when all rides have been reviewed.
        """
        return self.request("GET", "/api/next")["ride"]

    def live_ride(self) -> dict[str, Any]:
        """A live ride with an agent."""
        return self.request("POST", "/api/live", {})

    def stop(
        self, showing: int, step: int, latency_ms: int = 0, reason: str = ""
    ) -> dict[str, Any]:
        """Stop a ride at a step; returns when the stop is on the server's disk."""
        body = {
            "id": secrets.token_urlsafe(16),
            "step": step,
            "latency_ms": latency_ms,
            "reason": reason,
            "client_ms": time.time_ns() // 1_000_000,
        }
        return self.request("POST", f"/api/showings/{showing}/stop", body)

    def finish(self, showing: int) -> dict[str, Any]:
        """Report that a ride was watched to its end without a stop."""
        body = {"id": secrets.token_urlsafe(16)}
        return self.request("POST", f"/api/showings/{showing}/finish", body)

    # Admin

    def create_study(self, name: str, **settings: Any) -> dict[str, Any]:
        """Create a study; settings as in `POST /api/admin/studies`."""
        return self.request("POST", "/api/admin/studies", {"name": name, **settings})

    def add_rides(
        self, study: str, count: int, steps: int = 200, seed: int = 0
    ) -> dict[str, Any]:
        """Let the server's drivers record rides for a study."""
        body = {"count": count, "steps": steps, "seed": seed}
        return self.request("POST", f"/api/admin/studies/{study}/rides", body)

    def invite(
        self, study: str, names: list[str], kind: str = "person"
    ) -> dict[str, str]:
        """Invite supervisors; returns their invite tokens by name."""
        body = {"names": names, "kind": kind}
        answer = self.request("POST", f"/api/admin/studies/{study}/invites", body)
        return answer["invites"]

    # The wire

    def request(
        self, method: str, path: str, body: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """Send a request; retry if the connection breaks or the server is busy."""
        for attempt in range(RETRIES + 1):
            try:
                status, answer, wait = self._send(method, path, body)
            except (OSError, http.client.HTTPException) as error:
                self._connection.close()
                if attempt == RETRIES:
                    raise OSError(
                        f"expected a server at {self._connection.host}:"
                        f"{self._connection.port}, but it does not answer ({error})"
                    ) from error
                time.sleep(min(0.1 * 2**attempt, 2.0))
                continue
            if not _may_ask_again(status) or attempt == RETRIES:
                break
            time.sleep(wait)
        if status >= 400:
            raise RequestRefusedError(status, str(answer.get("error", "refused")))
        return answer

    def _send(
        self, method: str, path: str, body: dict[str, Any] | None
    ) -> tuple[int, dict[str, Any], float]:
        headers = {"accept": "application/json"}
        content = None
        if body is not None:
            content = json.dumps(body)
            headers["content-type"] = "application/json"
        if self.token is not None:
            headers["authorization"] = f"Bearer {self.token}"
        self._connection.request(method, path, content, headers)
        response = self._connection.getresponse()
        found = response.read()
        wait = min(float(response.headers.get("retry-after", "1")), MAX_WAIT_SECONDS)
        try:
            return response.status, json.loads(found), wait
        except ValueError:
            return (
                response.status,
                {"error": found[:200].decode(errors="replace")},
                wait,
            )


def _may_ask_again(status: int) -> bool:
    """Whether a retry makes sense: not after a final refusal (as in web/api.js)."""
    return status >= 500 or status in (408, 425, 429)
