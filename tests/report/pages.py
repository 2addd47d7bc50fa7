"""pages.py PROGRAM [FOLDER]: every kind of page of `tessera report` in a browser; screenshots go to FOLDER.

Pages are made from the records in tests/report/records. Nothing may be complained about in the console or fetched from elsewhere; tables
and CSV have the values of the records; hovering, legend, axes, zoom and keys work; colours have the contrast that WCAG AA asks for.
"""
import csv
import json
import pathlib
import random
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "e2e"))
from browser import Browser, find_chromium  # noqa: E402
from support import Bench, skip  # noqa: E402
from timelines import check_hostile_timeline, check_timeline  # noqa: E402

RECORDS, TRACES = HERE / "records", HERE / "traces"
# name of the page, its files, the sections that it must have, and how many charts at least
KINDS = [
    ("size", ["size.jsonl", "size_torch.jsonl"], ["size"], 2),
    ("batch", ["batch.jsonl"], ["batch"], 4),
    ("device", ["device.jsonl"], ["device"], 2),
    ("devices", ["device_tessera.jsonl", "device_pytorch.jsonl"], ["device"], 2),
    ("scaling", ["scaling.jsonl"], ["scaling"], 4),
    ("reconstruct", ["reconstruct.json", "tomography.json", "denoise.json"], ["reconstruct", "denoise"], 9),
    ("train", ["train.jsonl", "train.json"], ["train"], 4),
    ("fill", ["fill.json", "dem.jsonl"], ["fill"], 3),
    ("detect", ["detect.json", "stats.jsonl"], ["detect"], 4),
    ("denoise", ["denoise.json", "folder.json", "plan.json", "profile.json"], ["denoise", "plans"], 7),
    ("changes", ["size.jsonl", "later.jsonl"], ["changes", "size"], 4),
    ("others", ["unknown.jsonl"], ["others"], 1),
    ("timeline", ["queue.json", "ranks.json"], ["timeline"], 0),
]
UNITS = {"bytes": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "s": 1, "ms": 1e-3, "µs": 1e-6, "dB": 1}

FIGURES = """FIGURES.map((f) => ({title: f.spec.title, rows: rowsOf(f.spec), measure: f.measure, factor: f.yUnits[f.measure].factor,
  drawn: f.chart.data.datasets.filter((d, i) => !f.spec.series[i].plain).flatMap((d) => d.data.map((p) => p !== null && typeof p === 'object' ? p.y : p)),
  bars: Boolean(f.spec.bars)}))"""

# Ratio of contrast of every text, with its place, below what AA asks for. The colours of kinds have texts on them in timelines.
CONTRAST = """(() => {
  const rgb = (text) => (text.match(/[\\d.]+/g) || []).map(Number);
  const light = (c) => { const [r, g, b] = c.map((v) => v / 255).map((v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const ratio = (a, b) => { const [x, y] = [light(a), light(b)].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05); };
  const behind = (e) => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor); if (c.length === 3 || c[3] === 1) return c.slice(0, 3); } return [255, 255, 255]; };
  const low = [];
  let count = 0;
  for (const e of document.querySelectorAll("#page *")) {
    if (![...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim()) || e.disabled || !e.getClientRects().length) continue;
    const style = getComputedStyle(e), size = parseFloat(style.fontSize), large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    const got = ratio(rgb(style.color).slice(0, 3), behind(e));
    count++;
    if (got < (large ? 3 : 4.5)) low.push(`${e.tagName} ${e.textContent.slice(0, 30)}: ${got.toFixed(2)}`);
  }
  const probe = document.createElement("i");
  document.body.append(probe);
  const named = (name) => { probe.style.color = `var(${name})`; return rgb(getComputedStyle(probe).color).slice(0, 3); };
  const card = named("--card");
  for (let i = 0; i < 13; i++) if (ratio(named(`--series-${i}`), card) < 4.5) low.push(`series ${i}`);
  for (const name of ["--ink", "--soft"]) if (ratio(named(name), card) < 4.5 || ratio(named(name), named("--paper")) < 4.5) low.push(name);
  probe.remove();
  return {low, count};
})()"""

ACCESS = """(() => {
  const bad = [], name = (e) => (e.getAttribute("aria-label") || e.textContent || "").trim();
  for (const e of document.querySelectorAll("button, a, select, summary")) if (!name(e) && !e.closest("label")) bad.push(`${e.tagName} without a name`);
  for (const e of document.querySelectorAll("canvas")) if (e.getAttribute("role") !== "img" || !name(e) || e.tabIndex !== 0) bad.push(`canvas ${e.id}`);
  for (const e of document.querySelectorAll("img")) if (!e.alt || !e.naturalWidth) bad.push(`img ${e.alt}`);
  for (const e of document.querySelectorAll("input")) if (!name(e)) bad.push("input without a name");
  for (const f of document.querySelectorAll("figure:has(canvas)")) if (!f.querySelector("details.data") || !f.querySelector("button.csv") || !f.querySelector("details.where dd")) bad.push(`figure ${f.textContent.slice(0, 30)}`);
  const ids = [...document.querySelectorAll("[id]")].map((e) => e.id);
  if (new Set(ids).size !== ids.length) bad.push("ids are not unique");
  if (!document.documentElement.lang || document.querySelectorAll("h1").length !== 1) bad.push("lang, h1");
  return bad;
})()"""


def value_of(words):
    """The number in a text such as "tessera: 12.5 MiB · note"."""
    parts = words.split(" · ")[0].split(": ")[-1].split(" ")
    return float(parts[0]) * (UNITS.get(parts[1], 1) if len(parts) > 1 else 1)


class Pages:
    def __init__(self, program, folder):
        self.bench = Bench(program)
        self.check = self.bench.check
        self.browser = Browser(find_chromium())
        self.folder = folder
        self.folder.mkdir(parents=True, exist_ok=True)
        self.make_records()

    def make_records(self):
        """A later run of the size study, a study that no page knows, and a job with its most expensive layers."""
        own = self.bench.folder
        later = []
        for line in (RECORDS / "size.jsonl").read_text().splitlines():
            record = json.loads(line)
            record["measured"]["seconds"] *= 0.8
            later.append(json.dumps(record))
        (own / "later.jsonl").write_text("\n".join(later) + "\n")
        profiled = json.loads((RECORDS / "denoise.json").read_text())
        profiled["profile"] = {"seconds": 1.0, "layers": [{"name": f"m_up{i}.res.2", "op": "conv", "calls": 1, "seconds": 0.2 / i, "share": 0.2 / i, "of_limit": 0.1 * i, "bound": "flops"} for i in (1, 2, 3)]}
        (own / "profile.json").write_text(json.dumps(profiled))
        unknown = [{"study": "magic", "engine": engine, "size": size, "seconds": size**2 * k * 1e-6, "peak_bytes": 1000 * size} for engine, k in (("tessera", 1), ("wizard", 2)) for size in (64, 128, 256)]
        (own / "unknown.jsonl").write_text("\n".join(map(json.dumps, unknown)) + "\n")

    def file(self, name):
        return next(path for path in (RECORDS / name, TRACES / name, self.bench.folder / name) if path.exists())

    def make(self, name, files, *words):
        page = self.bench.folder / f"{name}.html"
        result = self.bench.run("report", *files, "-o", page, "--quiet", *words)
        if result.status and "libjs-chart.js" in result.err:
            skip("built without Chart.js")
        self.check(result.status == 0, f"{name}: the page is made: {result.err}")
        return page

    def look(self, name, files, sections, charts):
        browser, page = self.browser, self.make(name, map(self.file, files))
        browser.colours("light")
        browser.open(page)
        self.check(not browser.problems, f"{name}: nothing in the console: {browser.problems}")
        self.check(all(url.startswith(("file:", "data:")) for url in browser.requests), f"{name}: nothing is fetched: {browser.requests}")
        shown = browser.run("[...document.querySelectorAll('main > section')].map((e) => e.id)")
        self.check(set(sections) <= set(shown) and "files" in shown, f"{name}: sections {shown}")
        self.check(browser.run("document.querySelectorAll('.problem').length") == 0, f"{name}: every part is drawn")
        figures = browser.run(FIGURES)
        self.check(len(figures) >= charts, f"{name}: {len(figures)} charts")
        self.check_tables(name, figures)
        bad = browser.run(ACCESS)
        self.check(not bad, f"{name}: names for screen readers, tables, CSV, origin: {bad}")
        browser.run("document.querySelectorAll('details.where, details.data').forEach((d) => { d.open = true; })")
        browser.settle()
        for scheme in ("light", "dark"):
            browser.colours(scheme)
            result = browser.run(CONTRAST)
            self.check(not result["low"] and result["count"] > 20, f"{name}: contrast in {scheme} colours of {result['count']} texts: {result['low'][:5]}")
        browser.run("document.querySelectorAll('details').forEach((d) => { d.open = false; })")
        for scheme in ("dark", "light"):
            browser.colours(scheme)
            browser.picture(self.folder / f"{name}-{scheme}.png")
        self.check(not browser.problems, f"{name}: still nothing in the console: {browser.problems}")

    def check_tables(self, name, figures):
        """What is drawn, what the table says and the rows are the same numbers."""
        self.browser.run("document.querySelectorAll('details.data').forEach((d) => d.fill())")
        tables = self.browser.run("[...document.querySelectorAll('figure:not(.timeline):has(canvas) details.data table')].map((t) => [...t.querySelectorAll('tbody tr')].map((r) => [...r.children].map((c) => c.dataset.value ?? c.textContent)))")
        self.check(len(tables) == len(figures), f"{name}: each chart has its table")
        wrong = []
        for figure, table in zip(figures, tables):
            rows = [[("–" if cell is None else cell) for cell in row] for row in figure["rows"][1:]]
            same = len(rows) == len(table) and all(str(a) == b or (isinstance(a, (int, float)) and float(b) == a) for row, cells in zip(rows, table) for a, b in zip(row, cells))
            column = [row[2 + figure["measure"]] for row in figure["rows"][1:]]
            drawn = len(column) == len(figure["drawn"]) and all(a is None and b is None or a is not None and b is not None and abs(b * figure["factor"] - a) <= 1e-9 * abs(a) for a, b in zip(column, figure["drawn"]))
            if not same or not drawn:
                wrong.append((figure["title"], same, drawn))
        self.check(not wrong, f"{name}: tables equal what is drawn: {wrong}")

    # --- one chart, in detail ------------------------------------------------------------------------------------------

    def size_records(self):
        return [json.loads(line) for line in (RECORDS / "size.jsonl").read_text().splitlines()]

    def place(self, expression):
        """The middle of an element, or a point of a chart, in the window."""
        return self.browser.run(f"(() => {{ const r = ({expression}); return [r.x + (r.width || 0) / 2, r.y + (r.height || 0) / 2]; }})()")

    def point(self, dataset, index):
        return self.place(f"(() => {{ const c = FIGURES[0].chart, r = c.canvas.getBoundingClientRect(), p = c.getDatasetMeta({dataset}).data[{index}]; return {{x: r.x + p.x, y: r.y + p.y}}; }})()")

    def interact(self):
        browser = self.browser
        browser.open(self.make("one", [self.file("size.jsonl"), self.file("size_torch.jsonl")]))
        browser.run("FIGURES[0].canvas.scrollIntoView({block: 'center'})")
        browser.settle()
        self.hover()
        self.legend()
        self.zoom()
        self.keys()
        self.axes()
        self.download()
        self.check(not browser.problems, f"interaction: nothing in the console: {browser.problems}")

    def hover(self):
        ours = sorted(self.size_records(), key=lambda r: r["input"]["width"])
        rows = self.browser.run("FIGURES[0].spec.series[0].points.map((p) => p.x)")
        self.check(rows == [r["input"]["width"] for r in ours], f"the first line has the widths of the records: {rows}")
        for index in (0, len(rows) - 1, len(rows) // 2):
            x, y = self.point(0, index)
            self.browser.mouse("mouseMoved", x, y)
            self.browser.settle()
            tip = self.browser.run("(() => { const t = FIGURES[0].chart.tooltip; return {seen: t.opacity, title: t.title, lines: t.body.flatMap((b) => b.lines)}; })()")
            wanted = ours[index]["measured"]["peak_bytes"]["total"]
            good = tip["seen"] > 0 and any(abs(value_of(line) / wanted - 1) < 1e-3 for line in tip["lines"]) and tip["title"] == [f"width {rows[index]} pixels"]
            self.check(good, f"hovering shows {wanted} bytes at width {rows[index]}: {tip}")

    def legend(self):
        for way in ("mouse", "keyboard"):
            for shown in (False, True):
                if way == "mouse":
                    x, y = self.place("FIGURES[0].legend.children[0].getBoundingClientRect()")
                    for kind in ("mousePressed", "mouseReleased"):
                        self.browser.mouse(kind, x, y, button="left", clickCount=1)
                else:
                    self.browser.run("FIGURES[0].legend.children[0].focus()")
                    self.browser.press(" ")
                self.browser.settle()
                state = self.browser.run("[FIGURES[0].chart.isDatasetVisible(0), FIGURES[0].legend.children[0].getAttribute('aria-pressed')]")
                self.check(state == [shown, str(shown).lower()], f"the legend {'shows' if shown else 'hides'} a line by {way}: {state}")

    def range(self):
        return self.browser.run("['x', 'y'].flatMap((a) => [FIGURES[0].chart.scales[a].min, FIGURES[0].chart.scales[a].max])")

    def zoom(self):
        browser, whole = self.browser, self.range()
        wanted = browser.run("(() => { const c = FIGURES[0].chart, a = c.chartArea, r = c.canvas.getBoundingClientRect(), x = [a.left + a.width * 0.25, a.left + a.width * 0.75], y = [a.top + a.height * 0.2, a.top + a.height * 0.8];"
                             "return {from: [r.x + x[0], r.y + y[0]], to: [r.x + x[1], r.y + y[1]], range: [c.scales.x.getValueForPixel(x[0]), c.scales.x.getValueForPixel(x[1]), c.scales.y.getValueForPixel(y[1]), c.scales.y.getValueForPixel(y[0])]}; })()")
        browser.mouse("mousePressed", *wanted["from"], button="left", buttons=1, clickCount=1)
        browser.mouse("mouseMoved", *wanted["to"], button="left", buttons=1)
        self.check(browser.run("getComputedStyle(document.querySelector('.box')).display") != "none", "a box is drawn while the mouse is dragged")
        browser.mouse("mouseReleased", *wanted["to"], button="left", clickCount=1)
        browser.settle()
        got = self.range()
        self.check(all(abs(a - b) <= 0.02 * abs(b) + 1e-9 for a, b in zip(got, wanted["range"])), f"dragging zooms to the box: {got}, {wanted['range']}")
        browser.run("FIGURES[0].resetButton.click()")
        browser.settle()
        self.check(self.range() == whole and browser.run("FIGURES[0].resetButton.disabled"), "Reset shows everything again")
        x, y = self.place("FIGURES[0].canvas.getBoundingClientRect()")
        browser.run("document.activeElement.blur()")
        browser.mouse("mouseWheel", x, y, deltaX=0, deltaY=-100)
        browser.settle()
        self.check(self.range() == whole, "the wheel scrolls the page while the chart has no focus")
        browser.run("FIGURES[0].canvas.focus(); FIGURES[0].canvas.scrollIntoView({block: 'center'})")
        browser.settle()
        x, y = self.place("FIGURES[0].canvas.getBoundingClientRect()")
        browser.mouse("mouseWheel", x, y, deltaX=0, deltaY=-100)
        for _ in range(40):
            browser.settle()
            if self.range() != whole:
                break
            time.sleep(0.05)
        near = self.range()
        self.check(near[1] - near[0] < 0.9 * (whole[1] - whole[0]), f"the wheel zooms a chart with the focus: {near}")
        browser.press("0")
        self.check(self.range() == whole, "the key 0 shows everything again")
        browser.press("+")
        near = self.range()
        self.check(near[1] - near[0] < 0.9 * (whole[1] - whole[0]), f"the key + zooms: {near}")
        browser.press("Escape")

    def keys(self):
        browser = self.browser
        browser.run("FIGURES[0].canvas.focus()")
        browser.press("ArrowRight")
        browser.press("ArrowRight")
        said = browser.run("FIGURES[0].live.textContent")
        second = sorted(self.size_records(), key=lambda r: r["input"]["width"])[1]
        self.check(f"width {second['input']['width']}" in said and abs(value_of(said) / second["measured"]["peak_bytes"]["total"] - 1) < 1e-3, f"arrow keys walk over the points and speak: {said}")

    def axes(self):
        browser = self.browser
        types = "[FIGURES[1].chart.scales.x.type, FIGURES[1].chart.scales.y.type]"
        press = "[...FIGURES[1].canvas.closest('figure').querySelectorAll('.choice')].find((c) => c.textContent.startsWith('%s')).querySelectorAll('button')[%d].click()"
        browser.run(press % ("Vertical", 1))
        browser.run(press % ("Horizontal", 1))
        self.check(browser.run(types) == ["logarithmic", "logarithmic"], "both axes become logarithmic")
        browser.run(press % ("Vertical", 0))
        self.check(browser.run(types) == ["logarithmic", "linear"], "and linear again")
        browser.run(press % ("Show", 1))
        title, values = browser.run("[FIGURES[1].chart.options.scales.y.title.text, FIGURES[1].chart.data.datasets[0].data.map((p) => p.y)]")
        wanted = [r["measured"]["megapixels_per_second"] for r in sorted(self.size_records(), key=lambda r: r["input"]["width"])]
        self.check("Mpixel/s" in title and sorted(values) == sorted(wanted), f"another measure is drawn from the same records: {title}")
        browser.run("[...document.querySelectorAll('header button')].find((b) => b.textContent === 'dark').click()")
        self.check(browser.run("getComputedStyle(document.body).backgroundColor") == "rgb(20, 24, 29)", "the page turns dark by its button")

    def download(self):
        browser, own = self.browser, self.bench.folder / "downloads"
        own.mkdir()
        browser.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(own))
        browser.run("FIGURES[0].canvas.closest('figure').querySelector('button.csv').click()")
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline and not list(own.glob("*.csv")):
            browser.settle()
            time.sleep(0.1)
        files = list(own.glob("*.csv"))
        rows = list(csv.reader(files[0].open(newline=""))) if files else []
        got = {float(row[1]): float(row[2]) for row in rows[1:] if "planned" not in row[0] and row[0].startswith("tessera")}
        wanted = {r["input"]["width"]: r["measured"]["peak_bytes"]["total"] for r in self.size_records()}
        self.check(got == wanted and rows[0][1:3] == ["width (pixels)", "memory (bytes)"], f"the CSV has the records' bytes: {rows[:2]}")

    # --- other screens, paper, strangers -----------------------------------------------------------------------------------

    def screens(self):
        browser, page = self.browser, self.make("screens", [self.file(name) for _, files, _, _ in KINDS for name in files])
        browser.open(page, width=390, height=800)
        wide = browser.run("[document.documentElement.scrollWidth, innerWidth]")
        self.check(wide[0] <= wide[1], f"a narrow screen needs no sideways scrolling: {wide}")
        browser.picture(self.folder / "narrow.png", 390)
        browser.open(page)
        paper = browser.call("Page.printToPDF", printBackground=True)["data"]
        self.check(len(paper) > 50000, f"prints: {len(paper)} bytes")
        browser.call("Emulation.setEmulatedMedia", media="print")
        self.check(browser.run("getComputedStyle(document.querySelector('nav')).display") == "none", "paper has no navigation")
        browser.call("Emulation.setEmulatedMedia", media="")
        self.check(not browser.problems, f"all records together: nothing in the console: {browser.problems}")

    def slider(self):
        browser = self.browser
        browser.open(self.make("slider", [self.file("fill.json")]))
        browser.run("(() => { const s = document.querySelector('.compare input'); s.focus(); })()")
        before = browser.run("document.querySelectorAll('.stage img')[1].style.clipPath")
        browser.call("Input.dispatchKeyEvent", type="keyDown", key="ArrowRight", code="ArrowRight", windowsVirtualKeyCode=39)
        browser.call("Input.dispatchKeyEvent", type="keyUp", key="ArrowRight", code="ArrowRight", windowsVirtualKeyCode=39)
        browser.settle()
        after = browser.run("document.querySelectorAll('.stage img')[1].style.clipPath")
        self.check(before == "inset(0px 50% 0px 0px)" and after == "inset(0px 49% 0px 0px)", f"keys move the edge between before and after: {before}, {after}")

    def strangers(self):
        """Records whose text is markup, and records in which values have other types: drawn, or left out, but never run."""
        attack = "</script><img src=x onerror='window.hacked=1'><script>window.hacked=1</script>"
        own, rng = self.bench.folder, random.Random(7)
        odd = [None, True, "text", attack, -1, 0, 1e300, [], {}, [[]], [None, attack], {"a": attack}]

        def spoil(value, share):
            if rng.random() < share:
                return rng.choice(odd)
            if isinstance(value, dict):
                return {(attack if rng.random() < 0.02 else key): spoil(below, share) for key, below in value.items()}
            if isinstance(value, list):
                return [spoil(below, share) for below in value[:20]]
            return value

        lines = []
        for _, files, _, _ in KINDS:
            for name in files:
                if self.file(name).parent == TRACES:
                    continue
                records = [json.loads(line) for line in self.file(name).read_text().splitlines()]
                for share in (0.05, 0.3):
                    lines += [json.dumps(spoil({**r, "model": attack}, share)) for r in records[:6]]
        lines = [line for line in lines if line.startswith("{")]
        names = []
        for k in range(2):
            names.append(own / f"<b onmouseover=hacked> & {k}.jsonl")
            names[-1].write_text("\n".join(lines[k::2]) + "\n")
        for words in (names, names[:1]):
            self.browser.open(self.make("strangers", words, "--title", attack))
            self.browser.run("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
            self.browser.settle()
            state = self.browser.run("[typeof window.hacked, document.querySelectorAll('.problem').length, document.querySelectorAll('img[src=x], #page script').length, [...document.querySelectorAll('.problem')].map((e) => e.textContent)]")
            self.check(state[:3] == ["undefined", 0, 0] and not self.browser.problems, f"{len(lines)} spoiled records are drawn without harm: {state} {self.browser.problems[:3]}")


def main():
    if not find_chromium():
        skip("Chromium is not there (Debian: chromium)")
    pages = Pages(sys.argv[1], pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else "report-screenshots"))
    try:
        for kind in KINDS:
            pages.look(*kind)
        pages.interact()
        check_timeline(pages, TRACES / "queue.json")
        check_hostile_timeline(pages)
        pages.slider()
        pages.screens()
        pages.strangers()
    finally:
        pages.browser.close()
    pages.bench.finish()


main()
