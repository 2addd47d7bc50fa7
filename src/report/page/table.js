// The data of a chart as a table and as CSV, and the frame that holds a chart and all that belongs to it.

/** Rows of a figure's data, raw: [header, ...rows]. The units of the header are those of the records. */
function rowsOf(spec) {
  const unit = (axis) => axis.label + (axis.unit && axis.unit !== axis.label ? ` (${axis.unit})` : "");
  const notes = spec.series.some((line) => line.points.some((point) => point.note));
  const rows = [[spec.seriesName || "series", unit(spec.x), ...spec.measures.map(unit), ...(notes ? ["note"] : [])]];
  for (const line of spec.series) {
    if (line.plain) continue;
    for (const point of line.points) {
      rows.push([line.name, spec.x.words ? spec.x.words[point.x] : point.x, ...point.y.map((value) => (isNumber(value) ? value : null)), ...(notes ? [point.note || ""] : [])]);
    }
  }
  return rows;
}

/** Text that spreadsheets take for a formula gets a quote before it. */
function csvOf(rows) {
  const cell = (value) => {
    if (value === null || value === undefined) return "";
    if (isNumber(value)) return String(value);
    const safe = /^[=+\-@\t\r]/.test(value) ? "'" + value : value;
    return /[",\n\r]/.test(safe) ? '"' + safe.replace(/"/g, '""') + '"' : safe;
  };
  return rows.map((row) => row.map(cell).join(",")).join("\r\n") + "\r\n";
}

function tableOf(rows, caption, units = []) {
  const [head, ...body] = rows;
  const cells = (row) => row.map((value, i) =>
    isNumber(value) ? make("td", { class: "number", "data-value": value }, units[i] ? withUnit(value, units[i]) : plain(value, 6)) : make("td", {}, value === null || value === undefined ? "–" : String(value)));
  return make("table", {}, make("caption", {}, caption), make("thead", {}, make("tr", {}, head.map((name) => make("th", { scope: "col" }, name)))),
              make("tbody", {}, body.map((row) => make("tr", {}, cells(row)))));
}

function download(name, content) {
  const address = URL.createObjectURL(new Blob([content], { type: "text/csv" })), link = make("a", { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

/** Details that make their content when they are opened first: a table of ten thousand rows costs nothing until then. */
function lazyDetails(summary, content, name) {
  const details = make("details", { class: name }, make("summary", {}, summary));
  const fill = () => {
    if (details.childElementCount === 1) details.append(content());
  };
  details.addEventListener("toggle", () => details.open && fill());
  details.fill = fill;
  return details;
}

const fileSafe = (title) => title.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "").slice(0, 60) || "data";

function originList(entries) {
  const items = originOf(entries).flatMap(([name, values]) => [make("dt", {}, name), ...values.map((value) => make("dd", {}, value))]);
  return items.length ? make("dl", { class: "origin" }, items) : null;
}

/** One line that is always seen, and the rest: where, by which command, from which lines. */
function whereDetails(entries) {
  const places = unique(entries.map((entry) => whereOf(entry.record)));
  const short = places.slice(0, 2).join("; ") + (places.length > 2 ? `; and ${places.length - 2} more` : "");
  return make("details", { class: "where" }, make("summary", {}, "Made with " + short), originList(entries));
}

function choice(label, names, current, choose) {
  const buttons = names.map((name, i) => make("button", { type: "button", "aria-pressed": String(i === current), on: { click: () => {
    buttons.forEach((button, k) => button.setAttribute("aria-pressed", String(k === i)));
    choose(i);
  } } }, name));
  return make("span", { class: "choice", role: "group", "aria-label": label }, make("span", { class: "label" }, label), buttons);
}

function tools(figure) {
  const { spec } = figure, row = make("div", { class: "tools" });
  const button = (name, words, call) => make("button", { type: "button", title: words, "aria-label": words, on: { click: () => { call(); figure.changed(); } } }, name);
  if (spec.measures.length > 1) row.append(choice("Show", spec.measures.map((measure) => measure.label), 0, (i) => { figure.measure = i; figure.draw(); syncLog(); }));
  const logY = choice("Vertical axis", ["linear", "log"], figure.logY[0] ? 1 : 0, (i) => { figure.logY[figure.measure] = i === 1; figure.draw(); });
  const logX = choice("Horizontal axis", ["linear", "log"], figure.logX ? 1 : 0, (i) => { figure.logX = i === 1; figure.draw(); });
  if (spec.bars && !spec.upright) logY.firstChild.textContent = "Axis";
  const syncLog = () => {
    logY.hidden = Boolean(spec.stacked) || !figure.mayLog(figure.values((point) => point.y[figure.measure]));
    [...logY.querySelectorAll("button")].forEach((each, i) => each.setAttribute("aria-pressed", String((figure.logY[figure.measure] ? 1 : 0) === i)));
  };
  syncLog();
  row.append(logY);
  if (!spec.x.words && figure.mayLog(figure.values((point) => point.x))) row.append(logX);
  figure.resetButton = button("Reset", "Show everything again", () => resetZoom(figure.chart));
  row.append(make("span", { class: "choice", role: "group", "aria-label": "Zoom" }, make("span", { class: "label" }, "Zoom"),
                  button("+", "Zoom in", () => zoomBy(figure.chart, 0.8)), button("−", "Zoom out", () => zoomBy(figure.chart, 1.25)), figure.resetButton));
  return row;
}

/** Puts a chart with its frame into the page; measures that no record has are left out. Returns the figure, or null if there is nothing to draw. */
function drawFigure(parent, spec) {
  const known = spec.measures.map((measure, m) => spec.series.some((line) => !line.plain && line.points.some((point) => isNumber(point.y[m]))));
  spec.measures = spec.measures.filter((measure, m) => known[m]);
  spec.series = spec.series.map((line) => ({ ...line, points: line.points.map((point) => ({ ...point, y: line.plain ? point.y : known.flatMap((is, m) => (is ? [point.y[m]] : [])) })) }));
  spec.series = spec.series.filter((line) => line.points.length > 0 && (line.plain || line.points.some((point) => point.y.some(isNumber))));
  if (!spec.series.some((line) => !line.plain)) return null;
  const figure = new Figure(spec), hint = `${figure.id}-hint`;
  figure.canvas = make("canvas", { tabindex: 0, role: "img", id: figure.id, "aria-label": `Chart: ${spec.title}. ${spec.what || ""} The table below has the same values.`, "aria-describedby": hint,
                                   on: { keydown: (event) => figure.key(event) } });
  figure.live = make("p", { class: "hidden", "aria-live": "polite" });
  figure.legend = make("div", { class: "legend", role: "group", "aria-label": "Lines of the chart; press one to hide or show it" });
  const units = [null, spec.x.words ? null : spec.x.unit, ...spec.measures.map((measure) => measure.unit)];
  const frame = make("div", { class: spec.tall ? "frame tall" : "frame" }, figure.canvas);
  if (spec.height) frame.style.height = spec.height + "px";
  const table = lazyDetails("Table", () => make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": `Table: ${spec.title}` }, tableOf(rowsOf(spec), spec.title, units)), "data");
  const csv = make("button", { type: "button", class: "csv", on: { click: () => download(`${fileSafe(spec.title)}.csv`, csvOf(rowsOf(spec))) } }, "Download CSV");
  const box = make("figure", { class: spec.wide ? "wide" : "" }, make("figcaption", {}, make("h3", {}, spec.title), spec.what ? make("p", {}, spec.what) : null), tools(figure), figure.legend, frame, figure.live,
                   make("p", { class: "hidden", id: hint }, "Arrow keys go from point to point, plus and minus zoom, 0 shows everything again."),
                   make("div", { class: "below" }, table, csv), whereDetails(spec.entries || []));
  parent.append(box);
  figure.draw();
  connectZoom(figure, frame);
  return figure;
}
