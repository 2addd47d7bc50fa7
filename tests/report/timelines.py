"""The timeline of a trace in a browser: what the mouse is over, legend, zoom, keys, tables and CSV against the trace itself."""
import csv
import json
import time

# The colour at the middle of a span. It is read from a copy, because a browser complains about reading from what it draws.
PIXEL = """((line, span) => { const copy = document.createElement("canvas").getContext("2d", {willReadFrequently: true}), r = window.devicePixelRatio, x = (line.x(span.start) + line.x(span.start + span.extent)) / 2,
  y = AXIS + line.tracks[span.track].top - line.scroll.scrollTop + span.level * ROW + 1.5; copy.drawImage(line.canvas, -Math.floor(x * r), -Math.floor(y * r)); return [...copy.getImageData(0, 0, 1, 1).data]; })"""
PLACE = """((line, span) => { const r = line.canvas.getBoundingClientRect(); return [r.x + (line.x(Math.max(span.start, line.from)) + line.x(Math.min(span.start + span.extent, line.to))) / 2,
  r.y + AXIS + line.tracks[span.track].top - line.scroll.scrollTop + span.level * ROW + ROW / 2]; })"""
UNITS = {"s": 1e9, "ms": 1e6, "µs": 1e3}


def ns(words):
    value, unit = words.split(" ")[-2:]
    return float(value) * UNITS[unit]


class Line:
    """The first timeline of the page, beside the spans of its trace: (name, kind, start, duration) in ns."""

    def __init__(self, pages, path):
        self.browser, self.check, self.path = pages.browser, pages.check, path
        events = [event for event in json.loads(path.read_text())["traceEvents"] if event["ph"] == "X"]
        first = min(event["ts"] for event in events)
        self.spans = [(e["name"], e["cat"], round(1000 * (e["ts"] - first)), round(1000 * e["dur"])) for e in events]
        self.length = max(s[2] + s[3] for s in self.spans)

    def run(self, script):
        return self.browser.run(f"(() => {{ const line = TIMELINES[0], pixel = {PIXEL}, place = {PLACE}, longest = (kind) => line.tracks.flatMap((t) => t.spans).filter((s) => line.kinds[s.kind].name === kind)"
                                f".reduce((a, b) => (b.extent > a.extent ? b : a)); return {script}; }})()")

    def range(self):
        return self.run("[line.from, line.to]")

    def until(self, good, seconds=10):
        deadline = time.monotonic() + seconds
        while not good() and time.monotonic() < deadline:
            self.browser.settle()
            time.sleep(0.05)

    # --- what is checked ---------------------------------------------------------------------------------------------------

    def hover(self):
        for kind in ("job", "batch", "device", "loop"):
            name, _, start, length = max((s for s in self.spans if s[1] == kind), key=lambda s: s[3])
            x, y = self.run(f"place(line, longest('{kind}'))")
            self.browser.mouse("mouseMoved", x, y)
            self.browser.settle()
            tip = self.run("[line.tip.hidden, ...[...line.tip.children].map((c) => c.textContent)]")
            good = tip[:3] == [False, name, f"kind {kind}"] and abs(ns(tip[3]) - start) <= 1e-3 * start and abs(ns(tip[4]) / length - 1) < 1e-3 and tip[4].startswith("duration")
            self.check(good, f"hovering shows {name}, {start}, {length} ns: {tip}")
        self.browser.mouse("mouseMoved", x, self.run("line.canvas.getBoundingClientRect().bottom + 30"))
        self.until(lambda: self.run("line.tip.hidden"))
        self.check(self.run("line.tip.hidden"), "the words vanish when the mouse leaves")

    def legend(self):
        kinds = sorted({s[1] for s in self.spans})
        key = "document.querySelector('.timeline [data-kind=batch]')"
        self.check(sorted(self.run("[...document.querySelector('.timeline .legend').children].map((b) => b.dataset.kind)")) == kinds, f"the legend has the kinds {kinds}")
        before = self.run("pixel(line, longest('batch'))")
        for way in ("mouse", "keyboard"):
            for shown in (False, True):
                if way == "mouse":
                    x, y = self.browser.run(f"(() => {{ const r = {key}.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; }})()")
                    for kind in ("mousePressed", "mouseReleased"):
                        self.browser.mouse(kind, x, y, button="left", clickCount=1)
                else:
                    self.browser.run(f"{key}.focus()")
                    self.browser.press(" ")
                self.browser.settle()
                state = self.run(f"[{key}.getAttribute('aria-pressed'), pixel(line, longest('batch'))]")
                self.check(state[0] == str(shown).lower() and (state[1] == before) == shown, f"the legend {'shows' if shown else 'hides'} a kind by {way}: {state}, {before}")
        self.check(self.run("pixel(line, longest('batch')).join() !== pixel(line, longest('job')).join()"), "kinds have colours of their own")

    def zoom(self):
        browser, whole = self.browser, [0, self.length]
        press = "[...document.querySelectorAll('.timeline .tools button')].find((b) => b.getAttribute('aria-label') === '%s').click()"
        self.check(self.range() == whole, f"the whole trace is seen first: {self.range()}")
        browser.run(press % "Zoom in")
        near = self.range()
        self.check(abs(near[1] - near[0] - self.length / 2) < 2, f"the button zooms in by two: {near}")
        browser.run(press % "Later")
        later = self.range()
        self.check(abs(later[0] - near[0] - self.length / 8) < 2 and abs(later[1] - later[0] - near[1] + near[0]) < 2, f"the button moves by a quarter: {later}")
        browser.run(press % "Earlier")
        browser.run(press % "Show everything again")
        self.check(self.range() == whole, "Reset shows everything again")
        browser.run("TIMELINES[0].canvas.focus()")
        for key, good in (("+", lambda a, b: b[1] - b[0] < 0.9 * (a[1] - a[0])), ("ArrowRight", lambda a, b: b[0] > a[0] and abs(b[1] - b[0] - a[1] + a[0]) < 2),
                          ("ArrowLeft", lambda a, b: b[0] < a[0]), ("-", lambda a, b: b[1] - b[0] > 1.1 * (a[1] - a[0])), ("+", lambda a, b: b[1] - b[0] < a[1] - a[0]), ("0", lambda a, b: b == whole)):
            before = self.range()
            browser.press(key)
            self.check(good(before, self.range()), f"the key {key}: {before} to {self.range()}")
        x, y = self.run("place(line, longest('job'))")
        browser.mouse("mouseWheel", x, y, deltaX=0, deltaY=-100)
        self.until(lambda: self.range() != whole)
        near = self.range()
        self.check(near[1] - near[0] < 0.9 * self.length, f"the wheel zooms a timeline with the focus: {near}")
        browser.mouse("mouseWheel", x, y, deltaX=100, deltaY=0)
        self.until(lambda: self.range() != near)
        self.check(self.range()[0] > near[0], f"and moves it sideways: {self.range()}")
        browser.run("document.activeElement.blur()")
        before = self.range()
        browser.mouse("mouseWheel", x, y, deltaX=0, deltaY=-100)
        browser.settle()
        self.check(self.range() == before, "without the focus the wheel scrolls the page")
        self.drag(whole)

    def drag(self, whole):
        browser = self.browser
        browser.run("TIMELINES[0].reset(); TIMELINES[0].canvas.scrollIntoView({block: 'center'})")
        browser.settle()
        a, b, y, wanted = self.run("(() => { const r = line.canvas.getBoundingClientRect(), x = [line.left + 100, line.left + 400]; return [r.x + x[0], r.x + x[1], r.y + 40, x.map((p) => line.time(p))]; })()")
        browser.mouse("mousePressed", a, y, button="left", buttons=1, clickCount=1)
        browser.mouse("mouseMoved", b, y, button="left", buttons=1)
        browser.mouse("mouseReleased", b, y, button="left", clickCount=1)
        browser.settle()
        self.check(all(abs(got - want) < 0.01 * self.length for got, want in zip(self.range(), wanted)), f"dragging zooms to what was chosen: {self.range()}, {wanted}")
        browser.run("TIMELINES[0].reset()")
        self.check(self.range() == whole, "and everything is seen again")

    def keys(self):
        self.browser.run("TIMELINES[0].canvas.focus()")
        said = []
        for key in ("ArrowRight", "ArrowDown", "ArrowRight"):
            for kind in ("keyDown", "keyUp"):
                self.browser.call("Input.dispatchKeyEvent", type=kind, key=key, modifiers=8)
            self.browser.settle()
            said.append(self.run("line.live.textContent"))
        self.check(said[0].startswith("job, kind job, start 0 µs, duration") and len(set(said)) == 3 and abs(ns(said[0].split(", ")[3]) / self.length - 1) < 1e-3, f"Shift and arrows walk over the spans and speak: {said}")
        self.browser.press("Escape")

    def tables(self, folder):
        wanted = {}
        for name, kind, _, length in self.spans:
            count, total, longest = wanted.get((name, kind), (0, 0, 0))
            wanted[name, kind] = (count + 1, total + length, max(longest, length))
        rows = self.browser.run("[...document.querySelectorAll('.totals')[0].querySelectorAll('tbody tr')].map((r) => [...r.children].map((c) => c.dataset.value ?? c.textContent))")
        got = {(r[0], r[1]): (int(r[2]), round(float(r[3]) * 1e9), round(float(r[5]) * 1e9)) for r in rows}
        self.check(got == wanted and all(abs(float(r[4]) - float(r[3]) * 1e9 / self.length) < 1e-9 for r in rows), f"the table has count, total and share of {len(wanted)} names")
        self.browser.run("document.querySelector('.timeline details.data').open = true")
        self.until(lambda: self.browser.run("document.querySelectorAll('.timeline details.data tbody tr').length") > 0)
        rows = self.browser.run("[...document.querySelector('.timeline details.data').querySelectorAll('tbody tr')].map((r) => [...r.children].map((c) => c.dataset.value ?? c.textContent))")
        got = sorted((r[1], r[2], round(float(r[3]) * 1e9), round(float(r[4]) * 1e9)) for r in rows)
        self.check(got == sorted(self.spans), f"the table of spans has the {len(self.spans)} of the trace")
        own = folder / "timeline-downloads"
        own.mkdir()
        self.browser.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(own))
        self.browser.run("document.querySelector('.totals button.csv').click()")
        self.until(lambda: list(own.glob("*.csv")), 30)
        files = list(own.glob("*.csv"))
        rows = list(csv.reader(files[0].open(newline=""))) if files else [[]]
        got = {(r[0], r[1]): (int(r[2]), round(float(r[3]) * 1e9), round(float(r[5]) * 1e9)) for r in rows[1:]}
        self.check(got == wanted and rows[0][:4] == ["name", "kind", "spans", "total (seconds)"], f"the CSV has the same: {rows[:2]}")


def check_timeline(pages, path):
    pages.browser.colours("light")
    pages.browser.open(pages.make("timeline_one", [path]))
    pages.browser.run("TIMELINES[0].canvas.scrollIntoView({block: 'center'})")
    pages.browser.settle()
    line = Line(pages, path)
    line.hover()
    line.legend()
    line.zoom()
    line.keys()
    line.tables(pages.bench.folder)
    pages.check(not pages.browser.problems, f"timeline: nothing in the console: {pages.browser.problems}")


def check_hostile_timeline(pages):
    """Names that are markup, spans that overlap, thousands of tracks, times at the ends of what is a number; and merged spans."""
    attack, own = "</script><img src=x onerror='window.hacked=1'><script>window.hacked=1</script>", pages.bench.folder
    odd = [{"ph": "X", "name": attack + str(i % 50), "cat": f"{attack}{i % 40}", "pid": i % 50, "tid": f"{i % 300}{attack}", "ts": (i * 7919) % 5000 - 2500, "dur": i % 900} for i in range(3000)]
    (own / "odd.json").write_text(json.dumps(odd + [{"ph": "X", "name": "far", "ts": 1.9e15, "dur": 9e12}, {"ph": "X", "name": "__proto__", "cat": "constructor", "ts": 0, "dur": 0}]))
    many = [{"ph": "X", "name": f"n{i % 7}", "cat": "op", "pid": 0, "tid": i % 3, "ts": 2 * i, "dur": 1} for i in range(250000)]
    (own / "merged.json").write_text(json.dumps({"traceEvents": many}))
    browser = pages.browser
    for name in ("odd", "merged"):
        browser.open(pages.make(f"timeline_{name}", [own / f"{name}.json"]))
        browser.run("(() => { const line = TIMELINES[0]; line.canvas.scrollIntoView({block: 'center'}); line.canvas.focus(); for (let i = 0; i < 40; i++) line.zoom(0.5, line.left + 7 * i); line.reset(); line.zoom(0.1); })()")
        for i in range(12):
            x, y = browser.run(f"(() => {{ const r = TIMELINES[0].canvas.getBoundingClientRect(); return [r.x + r.width * (0.25 + 0.05 * {i}), r.y + 30 + 9 * {i}]; }})()")
            browser.mouse("mouseMoved", x, y)
        browser.run("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
        browser.settle()
        state = browser.run("[typeof window.hacked, document.querySelectorAll('.problem').length, document.querySelectorAll('img[src=x], #page script').length]")
        pages.check(state == ["undefined", 0, 0] and not browser.problems, f"timeline of {name}: drawn without harm: {state} {browser.problems[:2]}")
    note = browser.run("document.querySelector('.timeline .notes').textContent")
    pages.check("250000 spans are too many" in note and "merged" in note, f"the page says what was merged: {note}")
    x, y = browser.run("(() => { const line = TIMELINES[0], s = line.tracks[0].rows[0].find((each) => each.start > line.from && each.count > 1), p = " + PLACE + "; return p(line, s); })()")
    browser.mouse("mouseMoved", x, y)
    browser.settle()
    tip = browser.run("TIMELINES[0].tip.textContent")
    pages.check("short spans merged: several names" in tip and "together" in tip, f"and so does hovering: {tip}")
    browser.picture(pages.folder / "timeline-merged.png")
