// Sections of the page. Each builder gets the records of its kind; one that fails leaves a message, and the others stay.

const SECTIONS = [];

/** Adds a section that `build(parent)` fills; it is left out if nothing was put into it. */
function section(id, title, intro, build) {
  const body = make("section", { id, "aria-labelledby": `${id}-title` }, make("h2", { id: `${id}-title`, tabindex: -1 }, title), intro ? make("p", { class: "intro" }, intro) : null);
  const before = body.childElementCount;
  document.getElementById("sections").append(body);
  try {
    build(body);
  } catch (error) {
    body.append(make("p", { class: "problem" }, `This part could not be drawn from these records: ${error.message}`));
  }
  for (const box of body.querySelectorAll(".grid")) if (!box.childElementCount) box.remove();
  if (body.childElementCount === before) body.remove();
  else SECTIONS.push({ id, title });
}

const grid = (parent) => {
  const box = make("div", { class: "grid" });
  parent.append(box);
  return box;
};

/** Facts as a table of two columns; empty ones are left out. */
function facts(parent, caption, pairs) {
  const rows = pairs.filter(([, value]) => value !== "" && value !== null && value !== undefined && value !== "–");
  if (rows.length) parent.append(make("table", { class: "facts" }, make("caption", {}, caption), make("tbody", {}, rows.map(([name, value]) => make("tr", {}, make("th", { scope: "row" }, name), make("td", {}, String(value)))))));
}

const MEMORY = { label: "memory", unit: "bytes", fromZero: true };
const TIME = { label: "time", unit: "seconds", fromZero: true };

/** Lines from records: one for each name, points in the order of x. */
function linesOf(entries, nameOf, pointOf, more = {}) {
  return [...groupBy(entries, nameOf)].map(([name, own]) => ({
    name, ...more, points: own.map(pointOf).filter((point) => point && isNumber(point.x) && point.y.some(isNumber)).sort((a, b) => a.x - b.x) }));
}

/** The same lines for what was planned, dashed, in the colours of the measured ones. */
function withPlanned(measured, planned) {
  const colours = new Map(measured.map((line, i) => [line.name, i]));
  return [...measured, ...planned.filter((line) => line.points.length).map((line) => ({ ...line, name: `${line.name}, planned`, dash: "planned", colour: colours.get(line.name) ?? 0 }))];
}

/** Planned and measured bytes of one job by category, as bars. */
function memoryBars(parent, entry, title) {
  const categories = unique(["plan", "measured"].flatMap((side) => Object.keys(isObject(at(entry.record, `${side}.peak_bytes`)) ? at(entry.record, `${side}.peak_bytes`) : {}))).slice(0, 12);
  const line = (name, side) => ({ name, points: categories.map((key, x) => ({ x, y: [number(entry.record, `${side}.peak_bytes.${key}`)] })).filter((point) => isNumber(point.y[0])) });
  const series = [line("planned", "plan"), line("measured", "measured")].filter((each) => each.points.length === categories.length);
  return drawFigure(parent, { title, what: "Peak bytes by category. The peaks of categories may come at different times, so the total is not their sum.", entries: [entry], bars: true, seriesName: "figure",
                              x: { label: "category", words: categories }, measures: [MEMORY], series });
}
