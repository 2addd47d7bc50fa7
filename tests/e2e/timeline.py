"""timeline.py PROGRAM: traces among the files of `tessera report`, without a browser.

A trace of a real job is in the page span for span; traces are known by what they hold, not by their names; whatever they say stays
text; broken ones are refused with their name; one of a million spans is merged into a page of less than 3 MB."""
import json
import pathlib
import re
import sys

from support import Bench, leftovers, skip

bench = Bench(sys.argv[1])
check, refused, folder = bench.check, bench.check_refused, bench.folder
TRACES = pathlib.Path(__file__).resolve().parents[1] / "report" / "traces"
RECORD = {"command": "bench", "study": "size", "input": {"width": 128}, "measured": {"seconds": 0.5}}


def data_of(page):
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page.read_text(), re.S)[1])


def made(*words):
    page = folder / "page.html"
    page.unlink(missing_ok=True)
    result = bench.run("report", *words, "-o", page, "--quiet")
    if result.status and "libjs-chart.js" in result.err:
        skip("built without Chart.js")
    check(result.status == 0 and page.exists(), f"report {' '.join(pathlib.Path(w).name for w in words)[:60]}: {result}")
    return data_of(page)


def spans_of(line):
    """(process, thread, kind, name, start, duration, count, busy) of each span in a page, in ns after the first."""
    kinds, names, spans = [kind["name"] for kind in line["kinds"]], line["names"], []
    for track in line["tracks"]:
        flat, at, start, levels = track["spans"], 0, 0, 0
        while at < len(flat):
            after, extent, code, name = flat[at:at + 4]
            start += after
            levels = max(levels, code // len(kinds) + 1)
            count, busy = (1, extent) if name >= 0 else flat[at + 4:at + 6]
            spans.append((track["about"]["process"], track["about"]["thread"], kinds[code % len(kinds)], names[name if name >= 0 else -1 - name], start, extent, count, busy))
            at += 4 if name >= 0 else 6
        if levels != track["levels"]:
            check(False, f"{track['about']}: {levels} levels, not {track['levels']}")
    return spans


def events_of(path):
    trace = json.loads(path.read_text())
    names = {(e["pid"], e.get("tid")): e["args"]["name"] for e in trace["traceEvents"] if e["ph"] == "M"}
    spans = [e for e in trace["traceEvents"] if e["ph"] == "X"]
    first = min(round(1000 * e["ts"]) for e in spans)
    return [(names[e["pid"], None], names[e["pid"], e["tid"]], e["cat"], e["name"], round(1000 * e["ts"]) - first, round(1000 * e["dur"]), 1, round(1000 * e["dur"])) for e in spans]


def check_totals(line, events, what):
    wanted = {}
    for _, _, kind, name, _, duration, count, _ in events:
        total = wanted.setdefault((name, kind), [0, 0, 0])
        wanted[name, kind] = [total[0] + count, total[1] + duration, max(total[2], duration)]
    got = {(line["names"][row[0]], line["kinds"][row[1]]["name"]): row[2:] for row in line["totals"]}
    check(got == wanted, f"{what}: the totals of {len(wanted)} names")
    check([row[3] for row in line["totals"]] == sorted((row[3] for row in line["totals"]), reverse=True), f"{what}: the most expensive first")


# --- real traces -------------------------------------------------------------------------------------------------------------

made_here = folder / "job.json"
bench.record("reconstruct", folder / "out.npy", "--problem", "deblur", "--size", "32", "--iterations", "2", "--seed", "1", "--trace", made_here)
for path in (made_here, TRACES / "queue.json", TRACES / "ranks.json"):
    line, = made(path)["timelines"]
    events = events_of(path)
    check(sorted(spans_of(line)) == sorted(events), f"{path.name}: {len(events)} spans are in the page as they are")
    check_totals(line, events, path.name)
    check(line["facts"]["merged"] == line["facts"]["undrawn"] == 0 and line["facts"]["program"] == "tessera", f"{path.name}: nothing is merged or left out")
first = bench.run("report", made_here, TRACES / "ranks.json", "-o", folder / "two.html")
check(first.status == 0 and "2 traces" in first.out and len(data_of(folder / "two.html")["timelines"]) == 2, f"two traces, one page: {first}")

# --- known by what they hold ----------------------------------------------------------------------------------------------------

odd = folder / "records.jsonl"
odd.write_bytes(made_here.read_bytes())
records = folder / "trace.json"
records.write_text(json.dumps({**RECORD, "note": '"traceEvents":[{"ph":"X"'}) + "\n" + json.dumps(RECORD) + "\n")
data = made(odd, records)
check(len(data["timelines"]) == 1 and len(data["records"]) == 2 and [f["name"] for f in data["files"]] == ["trace.json"], "a trace named as records, and records named as a trace")
spaced = folder / "spaced.json"
spaced.write_text("\ufeff\n " + json.dumps({"schemaVersion": 1, "deviceProperties": [{"name": "]}"}], **json.loads(made_here.read_text())}, indent=1))
check(spans_of(made(spaced)["timelines"][0]) == spans_of(made(made_here)["timelines"][0]), "keys before the events, over many lines")
span = {"ph": "X", "name": "a", "cat": "op", "pid": 0, "tid": 0, "ts": 1, "dur": 1}
alone = folder / "list.json"
alone.write_text("[" + json.dumps(span) + ",\n")
result = bench.run("report", alone, "-o", folder / "page.html")
check(result.status == 0 and "has no end" in result.err, f"a list of events without its end is shown, and that is told: {result}")

# --- hostile ones -----------------------------------------------------------------------------------------------------------------

attack = "</script><script>alert(1)</script><!--\u2028&<img src=x onerror=alert(1)>"
evil = folder / "<b>&.json"
names = [{"ph": "M", "name": name, "pid": 0, "tid": 0, "args": {"name": attack}} for name in ("process_name", "thread_name")]
evil.write_text(json.dumps({"otherData": {"program": attack, "version": [attack]}, "traceEvents": [*names, {**span, "name": attack, "cat": attack}, {**span, "pid": attack, "tid": attack, "args": attack},
                            *({**span, "ts": ts, "dur": dur} for ts, dur in (("1", 1), (1, -1), (1e300, 1), (None, 1), (1, [1]))), {"ph": 7}, {}, 17, "x", None, [span]]}, ensure_ascii=False))
line, = made(evil)["timelines"]
text = (folder / "page.html").read_text()
check("alert(1)</script>" not in text and "<img src" not in text and "\u2028" not in text and text.count("<script>") == 2, "script in names of spans, kinds, tracks and files stays text")
check(line["facts"]["spans"] == 2 and line["facts"]["unreadable"] == 11 and attack in line["names"], f"what has no time is counted and left out: {line['facts']}")
for name, content, words in (
        ("cut.json", made_here.read_text()[:3000], ("cut.json", "line", "in the middle")),
        ("event.json", '{"traceEvents":[\n{"ph":"X",}\n]}', ("event.json", "line 2", "not valid JSON")),
        ("none.json", '{"traceEvents":[]}', ("none.json", "no spans")),
        ("deep.json", '{"traceEvents":[' + "[" * 100000 + "]" * 100000 + "]}", ("deep.json", "not valid JSON")),
        ("escape.json", '{"traceEvents":[{"a":\x1b[31m}]}', ("escape.json", "not valid JSON")),
        ("behind.json", '{"traceEvents":[' + json.dumps(span) + "]}\n{}", ("behind.json", "line 2", "behind the trace"))):
    (folder / name).write_text(content)
    result = bench.run("report", folder / name, "-o", folder / "refused.html")
    refused(result, 1, *words)
    check("\x1b" not in result.err, f"{name}: a message has no control characters of a file")
refused(bench.run("report", *[made_here] * 17, "-o", folder / "refused.html"), 1, "at most 16 traces")
refused(bench.run("report", made_here, "-o", made_here), 2, ".html")
check(not (folder / "refused.html").exists(), "a refused page is not there")

# --- much -----------------------------------------------------------------------------------------------------------------------

many, count = folder / "many.json", 80000
with open(many, "w") as to:
    to.write('{"traceEvents":[\n')
    for i in range(count):
        for thread in range(4):
            to.write(f'{{"ph":"X","name":"layer {i % 40}","cat":"op","pid":{i % 2},"tid":{thread},"ts":{20 * i}.5,"dur":{4 + thread}.25,"args":{{"op":"conv"}}}},\n')
    to.write('{"ph":"X","name":"big","cat":"' + "x" * (2 << 20) + '"},\n')
    to.write(json.dumps({**span, "name": "job", "cat": "job", "ts": 0, "dur": 20 * count}) + "]}")
result = bench.run("report", many, "-o", folder / "page.html", watch=True)
line, = data_of(folder / "page.html")["timelines"]
facts, spans = line["facts"], spans_of(line)
check(result.status == 0 and "are merged with their neighbours" in result.err and facts["spans"] == 4 * count + 1 and facts["unreadable"] == 1 and facts["drawn"] == len(spans) > 10000,
      f"{many.stat().st_size >> 20} MiB of spans are merged, and that is told: {facts}")
check(sum(s[6] for s in spans) == 4 * count + 1 and sum(s[7] for s in spans if s[2] == "op") == sum(row[3] for row in line["totals"] if line["kinds"][row[1]]["name"] == "op") == 1000 * count * (4 * 5.75),
      "none is lost: numbers and times of what was merged add up")
sanitized = b"__asan_init" in pathlib.Path(bench.program).read_bytes()  # takes memory of its own
check((folder / "page.html").stat().st_size < 3e6 and (sanitized or result.peak < 160 << 20), f"the page stays small ({(folder / 'page.html').stat().st_size}), and so does the memory ({result.peak})")
lines = folder / "lines.jsonl"
lines.write_text((json.dumps({"a": "x" * 200}) + "\n") * 20000)
check(len(made(lines, many, many)["timelines"]) == 2 and (folder / "page.html").stat().st_size < 3e6, f"with many records and twice: {(folder / 'page.html').stat().st_size} bytes")
check(not leftovers(folder), f"no temporary files are left: {leftovers(folder)}")
bench.finish()
