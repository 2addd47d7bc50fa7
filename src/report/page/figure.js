// A chart with everything that belongs to it: title, what was measured, legend of buttons, axes, zoom, table, CSV, origin.
//
// spec: {title, what, entries, x: {label, unit, log, words}, measures: [{label, unit, log, fromZero}], series, bars, stacked}
// series: [{name, points: [{x, y: [a value for each measure], note, mark}], dash, kind: "line"|"points"|"area"|"shape", plain}]
// `x.words` are the names of categories, and x of a point is then an index; `plain` lines (a diagonal) are not data: not in the table.

const FIGURES = [];
const MARKS = ["circle", "rect", "triangle", "rectRot", "crossRot", "star", "cross", "rectRounded"];
const DASHES = { planned: [6, 4], simulated: [2, 3], guide: [1, 4] };

function colours() {
  const style = getComputedStyle(document.documentElement), read = (name) => style.getPropertyValue(name).trim();
  return { series: [0, 1, 2, 3, 4, 5, 6, 7].map((i) => read(`--series-${i}`)), ink: read("--ink"), soft: read("--soft"), line: read("--line"), paper: read("--paper") };
}

/** The unit of an axis, chosen by the largest value. */
function axisUnit(axis, values) {
  const [factor, name] = unitFor(axis.unit, Math.max(0, ...values.filter(isNumber).map(Math.abs)));
  return { factor, name, title: axis.label + (name && name !== axis.label ? ` (${name})` : "") };
}

class Figure {
  constructor(spec) {
    this.spec = spec;
    this.measure = 0;
    this.logX = Boolean(spec.x.log);
    this.logY = spec.measures.map((measure) => Boolean(measure.log));
    this.hidden = new Set(spec.series.map((line, i) => (line.hidden ? i : -1)).filter((i) => i >= 0));
    this.id = `figure-${FIGURES.length + 1}`;
    this.xUnit = axisUnit(spec.x, this.values((point) => point.x));
    this.yUnits = spec.measures.map((measure, m) => axisUnit(measure, this.values((point) => point.y[m])));
    FIGURES.push(this);
  }

  values(read) {
    return this.spec.series.flatMap((line) => line.points.map(read));
  }

  /** A logarithmic axis shows positive values only, so it is offered only where all are. */
  mayLog(values) {
    const numbers = values.filter(isNumber);
    return numbers.length > 0 && numbers.every((value) => value > 0);
  }

  /** The mark of a line in the legend and, unless a point has its own, in the chart. */
  markOf(line, index) {
    return MARKS[(line.colour ?? index) % MARKS.length];
  }

  dataset(line, index, shades) {
    const colour = line.plain ? shades.soft : shades.series[(line.colour ?? index) % shades.series.length];
    const unit = this.yUnits[this.measure], marks = line.points.map((point) => point.mark || this.markOf(line, index));
    const points = line.points.map((point, i) => ({ x: point.x / this.xUnit.factor, y: isNumber(point.y[this.measure]) ? point.y[this.measure] / unit.factor : null, from: point, i }));
    const common = { label: line.name, hidden: this.hidden.has(index), borderColor: colour, backgroundColor: colour, stack: this.spec.stacked ? "one" : undefined };
    if (this.spec.bars) return { ...common, data: points.map((point) => point.y), points, borderWidth: 0, maxBarThickness: 22, minBarLength: 2 };
    return { ...common, data: points, order: line.kind === "points" ? -1 : 0, borderDash: DASHES[line.dash] || [], borderWidth: line.plain ? 1.5 : 2, showLine: line.kind !== "points", spanGaps: true,
             pointStyle: marks, pointRadius: line.plain || line.kind === "shape" || points.length > 150 ? 0 : line.dash === "planned" ? 7 : marks.includes("star") ? 10 : 4, ...(line.dash === "planned" ? { pointBackgroundColor: "transparent" } : {}), pointHoverRadius: 7, hitRadius: 6,
             fill: line.kind === "area" ? "-1" : line.kind === "shape" ? "shape" : false, ...(line.kind === "area" || line.kind === "shape" ? { backgroundColor: colour + "66" } : {}) };
  }

  options(shades) {
    const { spec } = this, measure = spec.measures[this.measure], unit = this.yUnits[this.measure];
    const axis = (log, title, extra) => ({ type: log ? "logarithmic" : "linear", title: { display: true, text: title, color: shades.ink }, grid: { color: shades.line },
                                           ticks: { color: shades.soft, autoSkip: !log, callback(value) { return log && !extra.afterBuildTicks && !isRound(value) ? "" : plain(value); } }, ...extra });
    const values = axis(this.logY[this.measure], unit.title, { beginAtZero: Boolean(measure.fromZero || spec.bars), stacked: Boolean(spec.stacked) });
    const words = { type: "category", labels: spec.x.words, stacked: Boolean(spec.stacked), title: { display: Boolean(spec.x.label), text: spec.x.label, color: shades.ink },
                    grid: { display: false }, ticks: { color: shades.soft, autoSkip: false } };
    const few = unique(this.values((point) => point.x)).filter(isNumber).map((value) => value / this.xUnit.factor).sort((a, b) => a - b);
    const ownTicks = this.logX && few.length <= 12 && few.every(Number.isInteger) ? { afterBuildTicks: (scale) => { scale.ticks = few.filter((value) => value >= scale.min && value <= scale.max).map((value) => ({ value })); } } : {};
    const scales = spec.bars ? (spec.upright ? { x: words, y: values } : { y: words, x: values }) : { x: axis(this.logX, this.xUnit.title, ownTicks), y: values };
    return { animation: false, responsive: true, maintainAspectRatio: false, indexAxis: spec.bars && !spec.upright ? "y" : "x", scales,
             interaction: spec.bars ? { mode: "index", axis: spec.upright ? "x" : "y", intersect: false } : { mode: "nearest", intersect: false },
             plugins: { legend: { display: false }, tooltip: { callbacks: { title: (items) => this.tipTitle(items), label: (item) => this.tipLabel(item) }, filter: (item) => !this.spec.series[item.datasetIndex].plain } } };
  }

  pointOf(datasetIndex, index) {
    return this.spec.series[datasetIndex].points[index];
  }

  xWords(point) {
    const { x } = this.spec;
    return x.words ? x.words[point.x] : `${x.label} ${withUnit(point.x, x.unit)}`;
  }

  tipTitle(items) {
    return items.length ? this.xWords(this.pointOf(items[0].datasetIndex, items[0].dataIndex)) : "";
  }

  tipLabel(item) {
    const line = this.spec.series[item.datasetIndex], point = this.pointOf(item.datasetIndex, item.dataIndex);
    return `${line.name}: ${withUnit(point.y[this.measure], this.spec.measures[this.measure].unit)}${point.note ? " · " + point.note : ""}`;
  }

  draw() {
    if (this.chart) this.chart.destroy();
    const shades = colours();
    const data = { labels: this.spec.x.words, datasets: this.spec.series.map((line, i) => this.dataset(line, i, shades)) };
    this.chart = new Chart(this.canvas, { type: this.spec.bars ? "bar" : "line", data, options: this.options(shades) });
    this.drawLegend(shades);
    this.changed();
  }

  changed() {
    if (this.resetButton) this.resetButton.disabled = !isZoomed(this.chart);
  }

  drawLegend(shades) {
    this.legend.replaceChildren(...this.spec.series.map((line, i) => {
      const button = make("button", { type: "button", class: "key", "aria-pressed": String(!this.hidden.has(i)), on: { click: () => this.toggle(i) } });
      button.append(swatch(line, line.plain ? shades.soft : shades.series[(line.colour ?? i) % shades.series.length], (line.points.find((point) => point.mark) || {}).mark || this.markOf(line, i), this.spec.bars), line.name);
      return button;
    }));
  }

  toggle(index) {
    if (this.hidden.has(index)) this.hidden.delete(index);
    else this.hidden.add(index);
    this.chart.setDatasetVisibility(index, !this.hidden.has(index));
    this.chart.update("none");
    this.legend.children[index].setAttribute("aria-pressed", String(!this.hidden.has(index)));
  }

  /** Arrow keys walk over the points; what is there is shown and spoken. */
  walk(event) {
    const lines = this.spec.series.map((line, i) => i).filter((i) => !this.hidden.has(i) && !this.spec.series[i].plain && this.spec.series[i].points.length);
    if (!lines.length) return false;
    const here = this.focus || { line: lines[0], point: -1 };
    let line = Math.max(0, lines.indexOf(here.line)), point = here.point;
    if (event.key === "ArrowRight") point++;
    else if (event.key === "ArrowLeft") point--;
    else if (event.key === "ArrowDown") line = (line + 1) % lines.length;
    else if (event.key === "ArrowUp") line = (line + lines.length - 1) % lines.length;
    else if (event.key === "Home") point = 0;
    else if (event.key === "End") point = Infinity;
    else return false;
    const points = this.spec.series[lines[line]].points;
    this.focus = { line: lines[line], point: Math.min(Math.max(point, 0), points.length - 1) };
    const active = [{ datasetIndex: this.focus.line, index: this.focus.point }], place = this.chart.getDatasetMeta(this.focus.line).data[this.focus.point];
    this.chart.setActiveElements(active);
    this.chart.tooltip.setActiveElements(active, { x: place.x, y: place.y });
    this.chart.update("none");
    const at = points[this.focus.point];
    this.live.textContent = `${this.xWords(at)}, ${this.tipLabel({ datasetIndex: this.focus.line, dataIndex: this.focus.point })}`;
    return true;
  }

  key(event) {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    if (event.key === "+" || event.key === "=") zoomBy(this.chart, 0.8);
    else if (event.key === "-") zoomBy(this.chart, 1.25);
    else if (event.key === "0" || event.key === "Escape") resetZoom(this.chart);
    else if (!this.walk(event)) return;
    this.changed();
    event.preventDefault();
  }
}

/** Ticks of a logarithmic axis that are worth a number: 1, 2 and 5 of each power of ten. */
function isRound(value) {
  const first = value / 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5].some((good) => Math.abs(first - good) < 1e-6) || Math.abs(first - 10) < 1e-6;
}

/** The line of a legend's key, as it is drawn in the chart. */
function swatch(line, colour, mark, bars) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const add = (tag, attributes) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    svg.append(element);
  };
  svg.setAttribute("viewBox", "0 0 28 12");
  svg.setAttribute("aria-hidden", "true");
  if (bars || line.kind === "area" || line.kind === "shape") add("rect", { x: 6, y: 1, width: 16, height: 10, fill: colour });
  else {
    if (line.kind !== "points") add("line", { x1: 0, y1: 6, x2: 28, y2: 6, stroke: colour, "stroke-width": 2, "stroke-dasharray": (DASHES[line.dash] || []).join(" ") });
    const shapes = { circle: ["circle", { cx: 14, cy: 6, r: 4 }], rect: ["rect", { x: 10, y: 2, width: 8, height: 8 }], triangle: ["path", { d: "M14 1 L19 10 L9 10 Z" }],
                     rectRot: ["path", { d: "M14 1 L19 6 L14 11 L9 6 Z" }], star: ["path", { d: "M14 1 V11 M9.7 3.5 L18.3 8.5 M9.7 8.5 L18.3 3.5" }],
                     cross: ["path", { d: "M14 1 V11 M9 6 H19" }], crossRot: ["path", { d: "M10 2 L18 10 M10 10 L18 2" }] };
    const [tag, shape] = shapes[mark] || shapes.circle;
    if (!line.plain) add(tag, { ...shape, fill: line.dash === "planned" ? "none" : colour, stroke: colour });
  }
  return svg;
}
