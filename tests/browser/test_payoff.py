"""What a person gets at the end of a study, and not before; in a real Chromium."""

import io
import shutil
from importlib.resources import as_file, files

import numpy as np
import pytest
from PIL import Image

from termdp.people.records.study_store import StudyStore, to_ride
from termdp.people.server.client import Client

# Judges so many rides through the page's own login: every second one is stopped.
JUDGE = """async (count) => {
  const { ask, deliver, freshId } = await import("/static/api.js");
  for (let n = 0; n < count; n++) {
    const { ride } = await ask("GET", "/api/next");
    if (!ride) return n;
    const verb = n % 2 ? "finish" : "stop";
    const more = n % 2 ? {} : { step: 20, latency_ms: 5 };
    await deliver(`/api/showings/${ride.showing}/${verb}`, { id: freshId(), ...more });
  }
  return count;
}"""


@pytest.fixture
def judged_by_another(server):
    """A study of its own, which one other person has judged."""
    with StudyStore.open(server.db) as store:
        store.create_study("payoff", step_ms=50)
        rides = store.rides("comfort")
        crashed = [ride.crashed for ride in rides]
        store.add_rides("payoff", [to_ride(ride) for ride in rides], crashed)
    admin = server.admin()
    invite = admin.invite("payoff", ["other"])["other"]
    admin.close()
    client = Client(server.url)
    client.join(invite)
    while ride := client.next_ride():
        client.stop(ride["showing"], 30, 5)
    client.close()


def test_the_others_and_the_model_come_at_the_end(
    visit, server, judged_by_another, tmp_path
):
    visitor = visit(viewport={"width": 390, "height": 844})
    page = visitor.page
    visitor.sign_in("payer", "payoff")
    assert page.evaluate(JUDGE, 4) == 4
    visitor.open("/results")
    assert page.locator(".stop-mine, .stop-mine_again").count() == 2
    assert "Once you have judged all the rides" in visitor.text("#stops")
    assert page.locator(".stop-people").count() == 0
    status = page.evaluate(
        """async () => (await fetch("/api/comparison", { headers:
          { authorization: `Bearer ${localStorage["termdp.token"]}` } })).status"""
    )
    assert status == 409

    assert page.evaluate(JUDGE, 99) == 7
    visitor.open("/results")
    assert "No model has been fitted" in visitor.text("#model-words")
    with as_file(
        files("termdp.envs") / "data" / "simulated_passengers.safetensors"
    ) as shipped:
        shutil.copy(shipped, tmp_path / "observer.safetensors")
    with StudyStore.open(server.db) as store:
        store.set_observer("payoff", str(tmp_path / "observer.safetensors"))
    visitor.open("/results")
    strips = page.locator(".compared")
    assert strips.count() == 10
    assert page.locator(".stop-people").count() == 11  # ten rides, one of them twice
    first = visitor.text(".compared >> nth=0")
    assert "1 of 1 others stopped" in first and "1 s" in first
    assert page.locator(".compared polygon").count() == 10  # the model's curve
    for words in ("you", "other people", "the fitted model’s chance of a stop"):
        assert words in visitor.text("#legend")
    assert "not just yours" in visitor.text("#model-words")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390

    with page.expect_download() as download:
        page.click("#keep-card")
    assert download.value.suggested_filename == "what-bothers-you.png"
    picture = Image.open(io.BytesIO(download.value.path().read_bytes()))
    assert picture.width == 1080
    assert len(np.unique(np.asarray(picture.convert("L")))) > 20
