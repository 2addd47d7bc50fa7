// The timeline of a trace on a canvas: one track below the other, in each track one row for each level of nesting, and in a row
// the spans in the colour of their kind. Time goes from left to right; the part that is seen is this.from to this.to, in ns.

const TIMELINES = [];
const ROW = 15, GAP = 7, AXIS = 24;
const KIND_COLOURS = new Map(Object.entries({ op: 0, write: 1, read: 2, upload: 3, exchange: 4, job: 5, launch: 6, batch: 7, loop: 8, download: 9, wait: 10, plan: 11, device: 12 }));
const KIND_WORDS = new Map(Object.entries({
  job: "the whole job", op: "a layer or an op of a solver", loop: "a helper thread's part of an op", batch: "a batch of windows, or a pass of training", read: "reading files", write: "writing files",
  upload: "samples to a device", download: "samples from a device", device: "measured by the device", launch: "handing work to a device", wait: "waiting for a device", exchange: "exchange with other ranks", plan: "measuring rates for the plan",
}));

const seconds = (ns) => withUnit(ns / 1e9, "seconds");

/** The spans of a track from the flat list of the page: see timeline_text.c. */
function spansOf(track, t, kinds, names) {
  const flat = list(track, "spans").map((value) => (isNumber(value) ? value : 0)), spans = [];
  for (let i = 0, start = 0; i + 3 < flat.length;) {
    const [after, extent, code, name] = flat.slice(i, i + 4), merged = name < 0;
    start += after;
    spans.push({ start, extent, level: Math.floor(code / kinds), kind: code % kinds, name: names[merged ? -1 - name : name] || "", count: merged ? flat[i + 4] : 1, busy: merged ? flat[i + 5] : extent, track: t });
    i += merged ? 6 : 4;
  }
  return spans;
}

class Timeline {
  constructor(data) {
    this.facts = at(data, "facts");
    this.length = Math.max(1, number(data, "facts.length") || 1);
    this.kinds = list(data, "kinds").map((kind, i) => ({ name: text(kind, "name"), spans: number(kind, "spans"), colour: KIND_COLOURS.get(text(kind, "name")) ?? i % 13 }));
    this.names = list(data, "names").map((name) => (isText(name) ? name : ""));
    this.totals = list(data, "totals").filter(Array.isArray);
    this.hidden = new Set();
    let top = 0;
    this.tracks = list(data, "tracks").map((track, t) => {
      const spans = spansOf(track, t, Math.max(1, this.kinds.length), this.names), levels = number(track, "levels") || 1;
      const rows = Array.from({ length: levels }, () => []);
      for (const span of spans) if (rows[span.level]) rows[span.level].push(span);
      const made = { name: `${text(track, "about.process")} · ${text(track, "about.thread")}`, thread: text(track, "about.thread"), top, levels, spans, rows, longest: rows.map((row) => row.reduce((most, span) => Math.max(most, span.extent), 0)) };
      top += levels * ROW + GAP;
      return made;
    });
    this.height = top;
    this.from = 0;
    this.to = this.length;
    this.id = `timeline-${TIMELINES.length + 1}`;
    TIMELINES.push(this);
  }

  get left() {
    return Math.round(Math.min(190, Math.max(70, this.width * 0.2)));
  }

  x(time) {
    return this.left + ((time - this.from) / (this.to - this.from)) * (this.width - this.left);
  }

  time(x) {
    return this.from + ((x - this.left) / (this.width - this.left)) * (this.to - this.from);
  }

  /** Shows a part of the trace; at least a few ns, and nothing outside of it. */
  show(from, to) {
    const length = Math.min(this.length, Math.max(20, to - from)), start = Math.min(Math.max(0, from), this.length - length);
    this.from = start;
    this.to = start + length;
    this.draw();
    this.changed();
  }

  zoom(factor, x = null) {
    const middle = x === null ? (this.from + this.to) / 2 : this.time(Math.max(x, this.left));
    this.show(middle - (middle - this.from) * factor, middle + (this.to - middle) * factor);
  }

  pan(share) {
    const by = share * (this.to - this.from);
    this.show(this.from + by, this.to + by);
  }

  reset() {
    this.show(0, this.length);
  }

  get isWhole() {
    return this.from === 0 && this.to === this.length;
  }

  /** The first span of a row that may be seen from `time` on. Spans of a row do not overlap, except merged ones a little. */
  firstFrom(track, level, time) {
    const row = track.rows[level];
    let low = 0, high = row.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (row[middle].start < time - track.longest[level]) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** The span at a place of the canvas; of several that are drawn there, the last, and within three pixels the nearest. */
  find(x, y) {
    const down = y - AXIS + this.scroll.scrollTop, track = this.tracks.find((each) => down >= each.top && down < each.top + each.levels * ROW);
    if (!track || x < this.left || y < AXIS) return null;
    const level = Math.floor((down - track.top) / ROW), time = this.time(x), reach = (3 * (this.to - this.from)) / (this.width - this.left), row = track.rows[level];
    let best = null, far = reach;
    for (let i = this.firstFrom(track, level, time - reach); i < row.length && row[i].start <= time + reach; i++) {
      const span = row[i], away = Math.max(0, span.start - time, time - span.start - span.extent);
      if (!this.hidden.has(span.kind) && away <= far) [best, far] = [span, away];
    }
    return best;
  }

  words(span) {
    const kind = this.kinds[span.kind].name, merged = span.count > 1;
    const name = span.name || (merged ? "several names" : "without a name");
    return [merged ? `${span.count} short spans merged: ${name}` : name, `kind ${kind}`, `start ${seconds(span.start)}`, merged ? `from first to last ${seconds(span.extent)}` : `duration ${seconds(span.extent)}`,
            ...(merged ? [`together ${seconds(span.busy)}`] : []), this.tracks[span.track].name];
  }

  draw() {
    const box = this.canvas.getBoundingClientRect(), ratio = window.devicePixelRatio || 1;
    this.width = Math.max(1, box.width);
    this.canvas.width = Math.round(this.width * ratio);
    this.canvas.height = Math.round(Math.max(1, box.height) * ratio);
    const to = this.canvas.getContext("2d"), style = getComputedStyle(document.documentElement), read = (name) => style.getPropertyValue(name).trim();
    const shades = { ink: read("--ink"), soft: read("--soft"), line: read("--line"), card: read("--card"), kinds: this.kinds.map((kind) => read(`--series-${kind.colour}`)) };
    to.scale(ratio, ratio);
    to.clearRect(0, 0, box.width, box.height);
    to.font = "12px system-ui, sans-serif";
    to.textBaseline = "middle";
    this.drawGrid(to, shades, box.height);
    const down = this.scroll.scrollTop;
    to.save();
    to.beginPath();
    to.rect(0, AXIS, this.width, box.height - AXIS);
    to.clip();
    for (const track of this.tracks) {
      const top = AXIS + track.top - down;
      if (top + track.levels * ROW >= AXIS && top <= box.height) this.drawTrack(to, shades, track, top);
    }
    to.restore();
    this.drawMark(to, shades);
  }

  /** Times at steps of 1, 2 or 5. */
  ticks() {
    const range = this.to - this.from, about = range / Math.max(2, Math.floor((this.width - this.left) / 110)), ten = 10 ** Math.floor(Math.log10(about));
    const step = [1, 2, 5, 10].map((k) => k * ten).find((each) => each >= about), ticks = [];
    for (let k = Math.ceil(this.from / step); k * step <= this.to; k++) ticks.push(k * step);
    return { ticks, step };
  }

  drawGrid(to, shades, height) {
    const { ticks, step } = this.ticks(), [factor, unit] = unitFor("seconds", this.to / 1e9), digits = Math.max(0, Math.ceil(-Math.log10(step / 1e9 / factor) - 1e-9));
    to.fillStyle = shades.soft;
    to.strokeStyle = shades.line;
    to.lineWidth = 1;
    to.beginPath();
    for (const tick of ticks) {
      const x = Math.round(this.x(tick)) + 0.5, words = `${(tick / 1e9 / factor).toFixed(Math.min(12, digits))} ${unit}`;
      to.moveTo(x, AXIS - 6);
      to.lineTo(x, height);
      const wide = to.measureText(words).width;
      to.fillText(words, Math.min(Math.max(this.left, x - wide / 2), this.width - wide), 9);
    }
    to.stroke();
  }

  drawTrack(to, shades, track, top) {
    to.fillStyle = shades.ink;
    to.fillText(to.measureText(track.name).width <= this.left - 10 ? track.name : fitted(to, track.thread, this.left - 10), 0, top + ROW / 2);
    to.save();
    to.beginPath();
    to.rect(this.left, 0, this.width - this.left, top + track.levels * ROW + GAP);
    to.clip();
    track.rows.forEach((row, level) => {
      const y = top + level * ROW;
      let before = -1, kind = -1;
      for (let i = this.firstFrom(track, level, this.from); i < row.length && row[i].start <= this.to; i++) {
        const span = row[i], x = this.x(span.start), wide = this.x(span.start + span.extent) - x;
        if (this.hidden.has(span.kind) || (wide < 1 && Math.floor(x) === before && span.kind === kind)) continue; // the pixel has this colour
        [before, kind] = [Math.floor(x), span.kind];
        this.drawSpan(to, shades, span, x, y, wide);
      }
    });
    to.restore();
  }

  /** A merged span is as high as the part of its time that its spans took, so that it is not taken for one that was busy all the time. */
  drawSpan(to, shades, span, x, y, wide) {
    const full = ROW - 2, high = span.count > 1 ? Math.max(4, Math.round(full * Math.min(1, span.busy / Math.max(1, span.extent)))) : full;
    const left = Math.max(x, this.left - 2), drawn = Math.min(x + Math.max(1, wide - (wide > 3 ? 1 : 0)), this.width + 2) - left;
    to.fillStyle = shades.kinds[span.kind];
    to.fillRect(left, y + full - high, drawn, high);
    if (drawn < 28 || high < full) return;
    to.fillStyle = shades.card;
    to.font = "11px system-ui, sans-serif";
    to.fillText(fitted(to, span.count > 1 ? `${span.count} × ${span.name || "…"}` : span.name, drawn - 6), left + 3, y + full / 2 + 0.5);
    to.font = "12px system-ui, sans-serif";
  }

  drawMark(to, shades) {
    if (!this.chosen) return;
    const span = this.chosen, y = AXIS + this.tracks[span.track].top - this.scroll.scrollTop + span.level * ROW, x = Math.max(this.left, this.x(span.start));
    to.strokeStyle = shades.ink;
    to.lineWidth = 2;
    if (y >= AXIS) to.strokeRect(x - 1, y - 1, Math.max(3, Math.min(this.width, this.x(span.start + span.extent)) - x + 1), ROW);
  }
}

/** As much of a text as fits, with dots for what does not. */
function fitted(to, words, wide) {
  if (to.measureText(words).width <= wide) return words;
  let length = Math.min(words.length, Math.floor(wide / 4));
  while (length > 0 && to.measureText(words.slice(0, length) + "…").width > wide) length--;
  return length > 0 ? words.slice(0, length) + "…" : "";
}
