"""The page of docs/export.md, in Chromium, with onnxruntime-web from npm."""

import functools
import http.server
import re
import shutil
import subprocess
import tarfile
import threading
from pathlib import Path

import numpy as np
import pytest

from onnx_agents import random_agent
from services import missing

PACKAGE = "onnxruntime-web"
VERSION = "1.30.0"
FILES = ("ort.wasm.min.js", "ort-wasm-simd-threaded.mjs", "ort-wasm-simd-threaded.wasm")
KEPT = Path.home() / ".cache" / "termdp-tests" / f"{PACKAGE}-{VERSION}"
DOCUMENT = Path(__file__).parents[2] / "docs" / "export.md"


@pytest.fixture(scope="module")
def runtime(tmp_path_factory):
    """The files of onnxruntime-web, fetched once."""
    if not all((KEPT / name).exists() for name in FILES):
        fetched = tmp_path_factory.mktemp("npm")
        if shutil.which("npm") is None:
            missing("npm")
        words = ["npm", "pack", "--silent", f"{PACKAGE}@{VERSION}"]
        done = subprocess.run(words, cwd=fetched, capture_output=True, timeout=300)
        if done.returncode:
            missing(f"npm with a way to {PACKAGE} {VERSION}")
        (archive,) = fetched.glob("*.tgz")
        KEPT.mkdir(parents=True, exist_ok=True)
        with tarfile.open(archive) as packed:
            for name in FILES:
                content = packed.extractfile(f"package/dist/{name}").read()
                (KEPT / name).write_bytes(content)
    return KEPT


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *words):
        pass


@pytest.fixture
def served(tmp_path, runtime):
    """A folder and its address; onnxruntime-web lies where npm install puts it."""
    place = tmp_path / "node_modules" / PACKAGE
    place.mkdir(parents=True)
    (place / "dist").symlink_to(runtime)
    (page,) = re.findall(r"```html\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
    (tmp_path / "index.html").write_text(page)
    handler = functools.partial(Quiet, directory=tmp_path)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield tmp_path, f"http://127.0.0.1:{server.server_port}/index.html"
    server.shutdown()
    server.server_close()
    thread.join()


def test_the_page_acts_as_the_agent_does(served, browser):
    folder, address = served
    small = {"hidden": 16, "filters": 4, "cost_hidden": 4}
    agent = random_agent("breakout", "termpg", numbers=small)
    agent.to_onnx(folder / "policy.onnx")
    page = browser.new_page()
    errors = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(address)
    page.wait_for_function("document.querySelector('#said').textContent != 'loading'")
    said = page.text_content("#said")
    assert re.fullmatch(r"action \d, stops 0\.\d+", said)
    page.evaluate("begin()")
    rng = np.random.default_rng(0)
    state = agent.initial_state(1)
    actions = set()
    for _ in range(40):
        observation = (rng.random((1, 10, 10, 4)) < 0.2).astype(np.float32)
        found = page.evaluate("x => act(x)", observation.ravel().tolist())
        action, after = agent.predict(observation, state, deterministic=True)
        assert found["action"] == action[0]
        chance = agent.stop_probability(observation, action, state)[0]
        assert found["stops"] == pytest.approx(chance, abs=1e-5)
        state = after
        actions.add(int(action[0]))
    assert len(actions) > 1
    page.evaluate("begin()")  # costs that add up would leave random weights no choice
    drawn = {
        page.evaluate("act(new Float32Array(400), true)")["action"] for _ in range(30)
    }
    assert len(drawn) > 1
    assert errors == []
    page.close()
