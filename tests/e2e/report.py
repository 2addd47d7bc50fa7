"""report.py PROGRAM: the page of `tessera report` from good and from hostile records, without a browser.

Pages are complete, small, refer to nothing outside, and hold the records as they are; whatever records say stays text; broken
files are refused with their line; a file of any size is read within bounded memory."""
import base64
import hashlib
import json
import os
import pathlib
import re
import shutil
import sys

import numpy as np

from support import Bench, leftovers, picture, skip, to_integers, write_png

bench = Bench(sys.argv[1])
check, refused, folder = bench.check, bench.check_refused, bench.folder
SAMPLES = pathlib.Path(__file__).resolve().parents[1] / "report" / "records"
LINE = {"command": "bench", "version": "0.1.0", "study": "size", "engine": "tessera", "model": "random:dncnn", "input": {"height": 64, "width": 128},
        "measured": {"seconds": 0.5, "peak_bytes": {"total": 1048576}}}


def save(name, *records):
    path = folder / name
    path.write_text("".join((each if isinstance(each, str) else json.dumps(each)) + "\n" for each in records))
    return path


def data_of(page):
    """What the page's script reads."""
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page.read_text(), re.S)[1])


def made(*words, **more):
    page = folder / "page.html"
    result = bench.run("report", *words, "-o", page, "--quiet", **more)
    check(result.status == 0 and page.exists(), f"report {' '.join(str(w) for w in words)[:60]}: {result}")
    return page if result.status == 0 else None


first = bench.run("report", save("one.jsonl", LINE), "-o", folder / "first.html")
if first.status == 1 and "libjs-chart.js" in first.err:
    refused(first, 1, "without a chart library", "libjs-chart.js")
    skip("built without Chart.js")
check(first.status == 0 and "1 record" in first.out and "open it in a browser" in first.out, f"the summary names the page: {first}")

# --- the page --------------------------------------------------------------------------------------------------------

samples = sorted([*SAMPLES.glob("*.json"), *SAMPLES.glob("*.jsonl")])
page = made(*samples, "--without-pictures")
text, bytes_of_it = page.read_text(), page.read_bytes()
check(made(*samples, "--without-pictures").read_bytes() == bytes_of_it, "the same records make the same page")
check(len(samples) >= 14 and page.stat().st_size < 3 << 20, f"{len(samples)} files of samples make a page of {page.stat().st_size} bytes")
check(not re.search(r'(?:src|href)\s*=\s*["\']?(?:https?:)?//|url\(|@import', text), "it refers to nothing outside")
policy = re.search(r'Content-Security-Policy" content="([^"]+)"', text)[1]
for tag in ("script", "style"):
    for body in re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.S):
        digest = base64.b64encode(hashlib.sha256(body.encode()).digest()).decode()
        check(f"'sha256-{digest}'" in policy, f"the policy allows this {tag} of {len(body)} letters by its hash")
check("default-src 'none'" in policy and "unsafe" not in policy, f"and nothing else: {policy[:40]}")
data = data_of(page)
wanted = [json.loads(line) for path in samples for line in path.read_text().splitlines() if line]
check([entry["record"] for entry in data["records"]] == wanted, "all records are in the page as they are")
check([f["name"] for f in data["files"]] == [p.name for p in samples], "with the names of their files")
check(data["pictures"] == [] and len(data_of(made(SAMPLES / "fill.json"))["pictures"]) == 3, "pictures of the files that a record names")
check("<title>a &lt;b&gt; &amp; &quot;c&quot;</title>" in made(samples[0], "--title", 'a <b> & "c"').read_text(), "the title is escaped")

# --- forms of files ----------------------------------------------------------------------------------------------------

pretty, listed = folder / "pretty.json", folder / "list.json"
pretty.write_text("\ufeff\n" + json.dumps(LINE, indent=2))
listed.write_text(json.dumps([LINE, LINE], indent=1))
check([len(data_of(made(path))["records"]) for path in (pretty, listed)] == [1, 2], "one object over several lines, and a list of them")
check(len(data_of(made(save("gaps.jsonl", "", LINE, "  ", LINE, "")))["records"]) == 2, "empty lines do not count")
windows = folder / "windows.jsonl"
windows.write_bytes(b"\r\n".join([json.dumps(LINE).encode()] * 3))
check(len(data_of(made(windows))["records"]) == 3, "lines of Windows, the last without an end")
cut = folder / "cut.jsonl"
cut.write_text(json.dumps(LINE) + "\n" + json.dumps(LINE)[:40])
result = bench.run("report", cut, "-o", folder / "page.html")
check(result.status == 0 and "last line is not complete" in result.err, f"a last line that is still being written is left out: {result}")
check(data_of(folder / "page.html")["files"][0]["cut_short"] is True, "and the page tells")
strange = save("nan.jsonl", '{"step": 1, "loss": NaN, "rate": -Infinity, "name": "NaN, \\"Infinity", "list": [Infinity, NaN, 2]}')
got = data_of(made(strange))
check(got["records"][0]["record"] == {"step": 1, "loss": None, "rate": None, "name": 'NaN, "Infinity', "list": [None, None, 2]} and
      got["files"][0]["not_numbers"] == 4, f"NaN and infinities are null, and counted: {got['records']}")
other = save("other.jsonl", {"command": 7, "version": "99.1", "study": ["size"], "measured": "fast", "input": None}, {"study": "size", "input": {"width": "wide"}}, {})
check(len(data_of(made(other))["records"]) == 3, "records of other versions")

# --- hostile ones ----------------------------------------------------------------------------------------------------------

attack = "</script><script>alert(1)</script><!--\u2028\u2029&<img src=x onerror=alert(1)>"
evil = folder / "</title><script>alert(2)</script>.jsonl".replace("/", "_")
evil.write_text(json.dumps({**LINE, "model": attack, attack: attack}, ensure_ascii=False) + "\n")
text = made(evil, "--title", attack[:80].replace("\u2028", "").replace("\u2029", "")).read_text()
check("alert(1)</script>" not in text and "<img src" not in text and "\u2028" not in text and text.count("<script>") == 2, "script in records, names and the title stays text")
check(data_of(folder / "page.html")["records"][0]["record"][attack] == attack, "and is not changed")
for name, content, words in (
        ("broken.jsonl", json.dumps(LINE) + "\n\n{\"a\": }\n" + json.dumps(LINE), ("line 3", "not valid JSON")),
        ("half.json", '{\n "a": 1,\n "b": \n', ("not valid JSON", "line 4")),
        ("number.jsonl", json.dumps(LINE) + "\n17\n", ("line 2", "JSON")),
        ("twice.jsonl", '{"a": 1, "a": 2}\n', ("line 1", "duplicate")),
        ("huge.jsonl", '{"a": 1e999}\n', ("line 1", "overflow")),
        ("deep.jsonl", "[" * 100000 + "\n", ("not valid JSON", "depth")),
        ("empty.jsonl", "", ("is empty",)),
        ("escape.jsonl", '{"a": \x1b[31m}\n', ("line 1", "not valid JSON"))):
    (folder / name).write_text(content)
    refused(bench.run("report", folder / name, "-o", folder / "refused.html"), 1, name, *words)
check("\x1b" not in bench.run("report", folder / "escape.jsonl", "-o", folder / "refused.html").err, "a message has no control characters of a file")
write_png(folder / "image.png", to_integers(picture(20, 20), np.uint8))
refused(bench.run("report", folder / "image.png", "-o", folder / "refused.html"), 1, "image.png", "line 1")
(folder / "zeros.bin").write_bytes(bytes(5000))
refused(bench.run("report", folder / "zeros.bin", "-o", folder / "refused.html"), 1, "zeros.bin", "zero byte")
refused(bench.run("report", folder, "-o", folder / "refused.html"), 1, "is a folder")
refused(bench.run("report", folder / "nothing.jsonl", "-o", folder / "refused.html"), 1, "nothing.jsonl", "No such file")
os.mkfifo(folder / "pipe")
refused(bench.run("report", folder / "pipe", "-o", folder / "refused.html", timeout=20), 1, "not a regular file")
check(not (folder / "refused.html").exists(), "a refused page is not there")

# --- outputs ------------------------------------------------------------------------------------------------------------

records = save("records.html", LINE)
(folder / "link.html").symlink_to(records)
for output in (records, folder / "link.html"):
    refused(bench.run("report", records, "-o", output), 2, "written over the records")
check(json.loads(records.read_text()) == LINE, "an input is never written over")
refused(bench.run("report", records), 2, "-o report.html")
refused(bench.run("report", records, "-o", folder / "page.txt"), 2, ".html")
refused(bench.run("report", records, "-o", folder / "no/where.html"), 1, "make its folder first")
(folder / "dir.html").mkdir()
refused(bench.run("report", records, "-o", folder / "dir.html"), 2, "no regular file")
old = made(save("one.jsonl", LINE)).read_bytes()
bench.run("report", folder / "broken.jsonl", "-o", folder / "page.html")
check((folder / "page.html").read_bytes() == old, "a page stays when its successor fails")
record = bench.record("report", folder / "one.jsonl", "--output", folder / "page.html")
check(record and record["report"]["records"] == 1 and record["report"]["bytes"] == len(old), f"the record of report: {record}")

# --- much ------------------------------------------------------------------------------------------------------------------

many = folder / "many.jsonl"
with open(many, "w") as lines:
    for step in range(400000):
        lines.write(json.dumps({"step": step, "loss": 1 / (step + 1), "rate": 0.001, "samples_per_second": 12.5, "note": "x" * 40}) + "\n")
result = bench.run("report", many, "-o", folder / "page.html", watch=True)
facts = data_of(folder / "page.html")["files"][0]
check(result.status == 0 and facts["lines"] == 400000 and 3000 < facts["kept"] < 100000 and facts["stride"] > 1 and f"one of {facts['stride']} is shown" in result.err,
      f"{many.stat().st_size >> 20} MiB of lines are thinned, and that is told: {facts}")
sanitized = b"__asan_init" in pathlib.Path(bench.program).read_bytes()  # takes memory of its own
check((folder / "page.html").stat().st_size < 3 << 20 and (sanitized or result.peak < 64 << 20), f"the page stays small ({(folder / 'page.html').stat().st_size}), and so does the memory ({result.peak})")
for name, line in (("tiny", "{}"), ("marks", json.dumps({"a": "<>&" * 60}))):
    many.write_text((line + "\n") * 100000)
    result = bench.run("report", many, "-o", folder / "page.html", "--quiet")
    check(result.status == 0 and (folder / "page.html").stat().st_size < 3e6, f"{name} records: a page of {(folder / 'page.html').stat().st_size} bytes")
many.unlink()
large = save("large.jsonl", {**LINE, "list": list(range(1000000)), "text": "é" * 500000, "nested": [[0] * 3000] * 300})
got = data_of(made(large))["records"][0]
check(got["shortened"] and len(got["record"]["list"]) >= 8 and got["record"]["list"][-1] == 999999 and got["record"]["measured"] == LINE["measured"], "a record with long lists is shortened")
refused(bench.run("report", save("long.jsonl", '{"a": "' + "x" * (17 << 20) + '"}'), "-o", folder / "refused.html"), 1, "line 1", "16 MiB")
heavy = [save(f"heavy{i}.jsonl", {**LINE, "text": ["y" * 1000] * 200}) for i in range(20)]
refused(bench.run("report", *heavy, "-o", folder / "refused.html"), 1, "2 MiB", "fewer files")
refused(bench.run("report", *[records] * 300, "-o", folder / "refused.html"), 1, "at most 256 files")
check(not leftovers(folder), f"no temporary files are left: {leftovers(folder)}")
shutil.rmtree(folder / "dir.html")
bench.finish()
