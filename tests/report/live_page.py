"""live_page.py PROGRAM [FOLDER]: the page of --live in a browser, while a real job trains a network; screenshots go to FOLDER.

The page shows progress, loss and memory against the plan as /state.json tells them, changes while the job runs, and ends with it:
it says so, keeps the last values and asks no more. Until then nothing may be complained about in the console.
"""
import json
import pathlib
import re
import subprocess
import sys
import time
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "e2e"))
import numpy as np  # noqa: E402
from browser import Browser, find_chromium  # noqa: E402
from support import Bench, interrupt, picture, skip, to_integers, write_config, write_png  # noqa: E402

STEPS = 100000  # more than are done before the test ends the job
ROWS = "Object.fromEntries([...document.querySelectorAll('#rows tr')].map((r) => [r.children[0].textContent, r.children[1].textContent]))"
# Pixels of the curve that are opaque: how many, and the brightness of the first. They are read from a copy, because a browser
# complains about reading from what it draws.
CURVE = """(() => { const copy = Object.assign(document.createElement("canvas"), {width: 1200, height: 320}).getContext("2d", {willReadFrequently: true}); copy.drawImage(document.getElementById("curve"), 0, 0);
  const data = copy.getImageData(0, 0, 1200, 320).data, opaque = []; for (let i = 0; i < data.length; i += 4) if (data[i + 3] === 255) opaque.push(data[i]); return [opaque.length, opaque[0]]; })()"""
CONTRAST = """(() => { const rgb = (words) => words.match(/[\\d.]+/g).map(Number).slice(0, 3), light = (c) => { const [r, g, b] = c.map((v) => v / 255).map((v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const probe = document.body.appendChild(document.createElement("i")); probe.style.backgroundColor = "Canvas"; const back = light(rgb(getComputedStyle(probe).backgroundColor)); probe.remove();
  return [...document.querySelectorAll("h1, td, p")].filter((e) => e.textContent).map((e) => light(rgb(getComputedStyle(e).color))).map((a) => (Math.max(a, back) + 0.05) / (Math.min(a, back) + 0.05)); })()"""


def begin(bench):
    """A job that trains until it is stopped. Gives the process and the port of its page."""
    bench.path("images").mkdir()
    for seed in range(3):
        write_png(bench.path("images") / f"{seed}.png", to_integers(picture(56, 64, 3, seed) * 0.8, np.uint8))
    keys = {"network": {"architecture": "dncnn", "widths": [16], "depth": 5, "norm": "batch"}, "batch": 4, "steps": STEPS, "output": "out.safetensors",
            "data": {"folders": ["images"], "crop": 24, "sigma": 0.1, "workers": 2}, "optimizer": {"rate": 3e-3}, "device": "cpu"}
    process = bench.start("train", write_config(bench.path("job.json"), keys, {}), "--quiet", "--live", "0", stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    line = process.stderr.readline()
    said = re.search(r"live page at http://127\.0\.0\.1:(\d+)/", line)
    if not said:
        process.wait()
        skip(line.strip()) if "libmicrohttpd" in line else bench.check(False, f"the port is printed: {line!r}")
    return process, int(said[1]) if said else 0


def state_of(port):
    return json.load(urllib.request.urlopen(f"http://127.0.0.1:{port}/state.json", timeout=30))


def until(browser, good, seconds=60):
    deadline = time.monotonic() + seconds
    while not good() and time.monotonic() < deadline:
        browser.settle()
        time.sleep(0.1)
    return good()


def mib(words):
    return [float(value) for value in re.findall(r"([\d.]+) MiB", words)]


def watch(bench, browser, port, folder):
    check = bench.check
    browser.colours("light")
    browser.open(f"http://127.0.0.1:{port}/", width=800, height=700)
    good = until(browser, lambda: "loss" in browser.run(ROWS) and mib(browser.run(ROWS).get("planned", "")))
    check(good, f"the page shows the job: {browser.run(ROWS)}")
    early, before = browser.run(ROWS), state_of(port)
    check(browser.run("document.getElementById('verb').textContent") == "tessera train", "the verb is its heading")
    check(until(browser, lambda: browser.run(ROWS)["steps"] != early["steps"] and not browser.run("document.getElementById('curve').hidden")), "the page changes while the job runs")
    rows, after = browser.run(ROWS), state_of(port)
    done, total = map(int, rows["steps"].split(" of "))
    check(int(early["steps"].split(" ")[0]) < done <= after["done"] and total == STEPS, f"progress goes on: {early['steps']}, {rows['steps']}")
    check(0 < browser.run("document.getElementById('bar').value") <= after["share"] and abs(float(rows["done"].split(" ")[0]) - 100 * done / total) < 0.06, f"the bar and the share are those of the steps: {rows['done']}")
    held, peak = mib(rows["memory"])
    check(abs(peak - after["peak_bytes"] / 2**20) < 0.06 and abs(mib(rows["planned"])[0] - after["planned_bytes"] / 2**20) < 0.06 and held <= peak <= mib(rows["planned"])[0] + 0.05, f"memory against the plan, as the state tells it: {rows['memory']}; {rows['planned']}")
    check(before["planned_bytes"] == after["planned_bytes"] and 0 < float(rows["loss"]) < 10, f"the loss: {rows['loss']}")
    words = browser.run("document.getElementById('what').textContent")
    check(words.startswith("loss: ") and browser.run(CURVE)[0] > 100, f"the curve of the loss is drawn: {words}")
    for scheme in ("dark", "light"):
        browser.colours(scheme)
        low = min(browser.run(CONTRAST))
        check(low >= 4.5, f"contrast in {scheme} colours: {low:.1f}")
        shade = browser.run(CURVE)[1]
        check(shade > 200 if scheme == "dark" else shade < 50, f"the curve is seen in {scheme} colours: {shade}")
        browser.picture(folder / f"live-{scheme}.png", 800)
    check(not browser.problems, f"nothing in the console while the job runs: {browser.problems}")
    check(all(url.startswith(f"http://127.0.0.1:{port}/") for url in browser.requests), f"nothing is fetched from elsewhere: {sorted(set(browser.requests))}")


def end(bench, browser, process, folder):
    """The browser itself notes requests that nobody answers; the page must not make more than a few of them, and throw nothing."""
    check = bench.check
    interrupt(process)
    check(process.wait(60) == 130, f"the job ends as always: {process.returncode}")
    last = "document.getElementById('what').textContent"
    check(until(browser, lambda: "has ended" in browser.run(last)), f"the page says that the job has ended: {browser.run(last)}")
    rows = browser.run(ROWS)
    check("steps" in rows and "planned" in rows, f"and keeps its last values: {rows}")
    time.sleep(3)
    browser.settle()
    asked = len(browser.requests)
    time.sleep(3)
    browser.settle()
    check(len(browser.requests) == asked, "it asks no more")
    others = [words for words in browser.problems if "Failed to load resource" not in words or "ERR_" not in words]
    check(not others and len(browser.problems) <= 3, f"nothing else in the console: {browser.problems}")
    browser.picture(folder / "live-ended.png", 800)


def main():
    if not find_chromium():
        skip("Chromium is not there (Debian: chromium)")
    bench, folder = Bench(sys.argv[1]), pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else "report-screenshots")
    folder.mkdir(parents=True, exist_ok=True)
    process, port = begin(bench)
    browser = Browser(find_chromium())
    try:
        if port:
            watch(bench, browser, port, folder)
            end(bench, browser, process, folder)
    finally:
        browser.close()
        if process.poll() is None:
            process.kill()
        process.wait()
        process.stderr.close()
    bench.finish()


main()
