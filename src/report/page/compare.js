// `report A B`: what changed from the first file to the second; and an explorer for records of unknown kinds.

/** All numbers of a record by path; lists are left out, as their elements have no names. */
function numbersOf(value, path = "", found = new Map(), depth = 0) {
  if (isNumber(value)) found.set(path, value);
  else if (isObject(value) && depth < 8) for (const key of Object.keys(value).slice(0, 200)) numbersOf(value[key], path ? `${path}.${key}` : key, found, depth + 1);
  return found;
}

// What tells records of a study from one another, besides their kind.
const IDENTITY = ["engine", "model", "architecture", "workload", "phase", "source", "sweep", "precision", "device", "input.height", "input.width", "input.samples", "patch", "batch", "transfer", "auto", "sampler", "case", "mode", "size", "step", "ranks"];
const identity = (entry) => [entry.kind, ...IDENTITY.map((path) => text(entry.record, path))].join("|");

/** Pairs of entries of the two files that measured the same, in their order; entries alone are counted. */
function pairsOf(first, second) {
  const left = groupBy(second, identity), pairs = [];
  for (const entry of first) {
    const own = left.get(identity(entry));
    if (own && own.length) pairs.push([entry, own.shift()]);
  }
  return pairs;
}

const labelOf = (entry) => [entry.kind.replace("study:", ""), ...IDENTITY.slice(1).map((path) => [path.split(".").pop(), text(entry.record, path)]).filter(([, value]) => value).map(([name, value]) => `${name} ${value}`)].slice(0, 8).join(", ");

function unitOfPath(path) {
  return /bytes/.test(path) ? "bytes" : /seconds(\.|$)/.test(path) && !/per_second/.test(path) ? "seconds" : "";
}

function changesOf(pairs) {
  const rows = [];
  for (const [a, b] of pairs) {
    const before = numbersOf(a.record), after = numbersOf(b.record);
    for (const [path, was] of before) {
      const is = after.get(path);
      if (isNumber(is) && is !== was) rows.push({ label: labelOf(a), path, was, is, change: was !== 0 ? is / was - 1 : null });
    }
  }
  return rows;
}

function comparePage(body) {
  if (DATA.files.length !== 2) return;
  const [first, second] = [0, 1].map((file) => ENTRIES.filter((entry) => entry.file === file)), pairs = pairsOf(first, second);
  if (!pairs.length) return;
  const names = DATA.files.map((file) => text(file, "name")), changes = changesOf(pairs), most = 2000;
  body.append(make("p", {}, `${pairs.length} record${pairs.length === 1 ? "" : "s"} of ${names[0]} measured the same as one of ${names[1]}; ${first.length - pairs.length} and ${second.length - pairs.length} have no counterpart. ${changes.length} numbers differ.`));
  for (const [path, unit, title] of [["measured.seconds", "seconds", "Time"], ["measured.peak_bytes.total", "bytes", "Memory"]]) {
    const own = pairs.filter(([a, b]) => isNumber(number(a.record, path)) && isNumber(number(b.record, path)));
    if (!own.length) continue;
    const ends = own.flatMap(([a, b]) => [number(a.record, path), number(b.record, path)]).filter((value) => value > 0), low = Math.min(...ends), high = Math.max(...ends);
    drawFigure(body, { title: `${title}: ${names[0]} against ${names[1]}`, what: "Each mark is a pair of records; below the line the second file has less.", entries: own.flat(), wide: own.length > 1,
      x: { label: names[0], unit, log: high > 20 * low }, measures: [{ label: names[1], unit, log: high > 20 * low }],
      series: [{ name: "pairs", kind: "points", points: own.map(([a, b]) => ({ x: number(a.record, path), y: [number(b.record, path)], note: labelOf(a) })) },
               { name: "no change", plain: true, dash: "guide", points: [{ x: low, y: [low] }, { x: high, y: [high] }] }] });
  }
  changes.sort((a, b) => Math.abs(b.change ?? 0) - Math.abs(a.change ?? 0));
  const rows = [["record", "value", names[0], names[1], "change"], ...changes.slice(0, most).map((row) => {
    const unit = unitOfPath(row.path);
    return [row.label, row.path, unit ? withUnit(row.was, unit) : row.was, unit ? withUnit(row.is, unit) : row.is, row.change === null ? "–" : `${row.change > 0 ? "+" : ""}${plain(100 * row.change, 3)} %`];
  })];
  const raw = [["record", "value", names[0], names[1]], ...changes.map((row) => [row.label, row.path, row.was, row.is])];
  body.append(make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "What changed" }, tableOf(rows, `What changed, the largest changes first${changes.length > most ? ` (${most} of ${changes.length}; the CSV has all)` : ""}`)),
              make("button", { type: "button", class: "csv", on: { click: () => download("changes.csv", csvOf(raw)) } }, "Download CSV"));
}

/** Any numbers of the records against one another, chosen by the reader. */
function explorerPage(kinds) {
  return (body) => {
    const known = new Set(kinds), entries = ENTRIES.filter((entry) => !known.has(entry.kind));
    for (const [kind, own] of groupBy(entries, (entry) => entry.kind)) exploreKind(body, kind, own);
  };
}

function exploreKind(body, kind, entries) {
  const all = entries.map((entry) => numbersOf(entry.record)), paths = unique(all.flatMap((numbers) => [...numbers.keys()])).slice(0, 300);
  const title = kind === "other" ? "Records" : kind.replace("study:", "study ");
  const words = unique(entries.flatMap((entry) => Object.keys(entry.record).filter((key) => isText(entry.record[key])))).slice(0, 20);
  const rows = [[...words, ...paths], ...entries.map((entry, i) => [...words.map((key) => text(entry.record, key)), ...paths.map((path) => all[i].get(path) ?? null)])];
  const box = make("div", { class: "job" }, make("h3", {}, `${title}: ${entries.length} record${entries.length === 1 ? "" : "s"}`));
  body.append(box);
  const varying = paths.filter((path) => unique(all.map((numbers) => numbers.get(path))).length > 1);
  if (entries.length > 1 && varying.length > 1) {
    const stage = make("div"), pick = (label, path, call) => make("label", {}, label + " ", make("select", { on: { change: (event) => { call(event.target.value); draw(); } } },
      varying.map((each) => make("option", { value: each, selected: each === path }, each))));
    const likely = (patterns) => varying.find((path) => patterns.some((pattern) => pattern.test(path)));
    let x = likely([/(^|\.)(width|size|batch|step|samples|height|ranks)$/]) || varying[0];
    let y = likely([/seconds$|(^|\.)ms$|_ms$/, /bytes/]) || varying.find((path) => path !== x);
    if (y === x) y = varying.find((path) => path !== x);
    const name = namerOf(entries, [engineField, ...words.filter((key) => !["engine", "version", "command", "study"].includes(key))]);
    const draw = () => {
      stage.replaceChildren();
      drawFigure(stage, { title: `${title}: ${y} by ${x}`, entries, wide: true, x: { label: x, unit: unitOfPath(x) }, measures: [{ label: y, unit: unitOfPath(y) }], series: linesOf(entries, name, (e) => ({ x: number(e.record, x), y: [number(e.record, y)] })) });
    };
    box.append(make("p", { class: "tools" }, pick("Horizontal", x, (path) => (x = path)), pick("Vertical", y, (path) => (y = path))), stage);
    draw();
  }
  box.append(lazyDetails("Table of all values", () => make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": `Values: ${title}` }, tableOf(rows, `${title}, all values`)), "data"),
             make("button", { type: "button", class: "csv", on: { click: () => download(`${fileSafe(title)}.csv`, csvOf(rows)) } }, "Download CSV"), whereDetails(entries));
}
