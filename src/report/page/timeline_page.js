// What belongs to a timeline: buttons, legend, what the mouse is over, keys, the table of totals, and what the page leaves out.

/** What a reader must know of how the trace became this picture. */
function timelineNotes(facts) {
  const n = (key) => number(facts, key) || 0, notes = [];
  if (n("merged")) notes.push(`${n("spans")} spans are too many for a page: ${n("merged")} that are shorter than ${seconds(n("resolution"))} are merged with neighbours of the same track, nesting and kind into ${n("merged_into")}, which are as high as the part of their time that was busy`);
  if (n("undrawn")) notes.push(`${n("undrawn")} spans are counted in the table but not drawn: deeper than 16 levels, or of tracks beyond the 128 busiest`);
  if (n("not_recorded")) notes.push(`${n("not_recorded")} spans came when the memory of the trace was full and were not recorded`);
  if (n("figures")) notes.push(`${n("figures")} values over time (loss, PSNR) are not shown here`);
  if (n("others")) notes.push(`${n("others")} events of other kinds (marks, arrows, halves of spans) are left out`);
  if (n("unreadable")) notes.push(`${n("unreadable")} events lack a time or a length, or are too large, and are left out`);
  if (at(facts, "cut_short") === true) notes.push("the file has no end: what is there is shown");
  return notes;
}

/** Totals as rows, raw: seconds, and the share of the trace's length. */
function totalRows(line) {
  const rows = [["name", "kind", "spans", "total (seconds)", "share of the trace's length", "longest (seconds)"]];
  for (const [name, kind, count, busy, longest] of line.totals)
    rows.push([kind < 0 ? "all other names" : line.names[name] || "without a name", kind < 0 ? "" : line.kinds[kind]?.name || "", count, busy / 1e9, busy / line.length, longest / 1e9]);
  return rows;
}

/** The spans that are drawn in the part that is seen, in the order of their starts. */
function spanRows(line) {
  const rows = [["track", "name", "kind", "start (seconds)", "duration (seconds)", "spans", "together (seconds)"]];
  for (const track of line.tracks) for (const span of track.spans)
    if (span.start <= line.to && span.start + span.extent >= line.from && !line.hidden.has(span.kind)) rows.push([track.name, span.name || (span.count > 1 ? "several names" : ""), line.kinds[span.kind].name, span.start / 1e9, span.extent / 1e9, span.count, span.busy / 1e9]);
  return rows;
}

function timelineLegend(line) {
  return line.kinds.map((kind, i) => {
    if (!kind.spans) return null;
    const mark = swatch({ kind: "shape" }, `var(--series-${kind.colour})`, "", true);
    const button = make("button", { type: "button", class: "key", "data-kind": kind.name, "aria-pressed": "true", title: KIND_WORDS.get(kind.name), on: { click: () => {
      if (!line.hidden.delete(i)) line.hidden.add(i);
      button.setAttribute("aria-pressed", String(!line.hidden.has(i)));
      line.point(null);
      line.draw();
    } } }, mark, kind.name);
    return button;
  });
}

/** Keys: plus and minus zoom, left and right move, with Shift they go from span to span, 0 shows everything. */
function timelineKey(line, event) {
  if (event.altKey || event.ctrlKey || event.metaKey) return;
  const arrows = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  const [across, down] = arrows[event.key] || [0, 0];
  if (event.key === "+" || event.key === "=") line.zoom(0.8);
  else if (event.key === "-") line.zoom(1.25);
  else if (event.key === "0" || event.key === "Escape") line.reset();
  else if (event.key === "Home") line.show(0, line.to - line.from);
  else if (event.key === "End") line.show(line.length - (line.to - line.from), line.length);
  else if (event.shiftKey && (across || down)) walkSpans(line, across, down);
  else if (across) line.pan(0.2 * across);
  else if (down) line.scroll.scrollTop += down * 3 * ROW;
  else return;
  event.preventDefault();
}

/** To the next or previous span of a row, or to the row below or above; what is there is shown and spoken. */
function walkSpans(line, across, down) {
  const seen = (span) => span && !line.hidden.has(span.kind), rows = line.tracks.flatMap((track) => track.rows).filter((row) => row.some(seen));
  if (!rows.length) return;
  const current = line.chosen && rows.findIndex((row) => row.includes(line.chosen));
  let next = rows[0].find(seen);
  if (line.chosen && current >= 0 && across) {
    const row = rows[current].filter(seen), to = row.indexOf(line.chosen) + across;
    next = row[Math.min(Math.max(to, 0), row.length - 1)];
  } else if (line.chosen && current >= 0) {
    const row = rows[(current + down + rows.length) % rows.length].filter(seen), start = line.chosen.start;
    next = row.reduce((best, span) => (Math.abs(span.start - start) < Math.abs(best.start - start) ? span : best));
  }
  if (next.start + next.extent < line.from || next.start > line.to) line.show(next.start - (line.to - line.from) / 2, next.start + (line.to - line.from) / 2);
  const top = line.tracks[next.track].top + next.level * ROW;
  if (top < line.scroll.scrollTop || top + ROW + AXIS > line.scroll.scrollTop + line.scroll.clientHeight) line.scroll.scrollTop = Math.max(0, top - ROW);
  line.point(next, (line.x(Math.max(line.from, next.start)) + line.x(Math.min(line.to, next.start + next.extent))) / 2, AXIS + top - line.scroll.scrollTop);
  line.live.textContent = line.words(next).join(", ");
}

/** Shows what is known of a span beside a place of the canvas; null: hides it. */
function pointAt(line, span, x, y) {
  line.chosen = span;
  line.tip.hidden = !span;
  if (span) {
    const [first, ...more] = line.words(span);
    line.tip.replaceChildren(make("strong", {}, first), ...more.map((words) => make("div", {}, words)));
    line.tip.style.left = Math.max(0, Math.min(x + 12, line.width - line.tip.offsetWidth)) + "px";
    line.tip.style.top = y + ROW + 6 + "px";
  }
  line.draw();
}

function connectTimeline(line) {
  const { canvas, frame } = line, box = make("div", { class: "box", hidden: true });
  let from = null;
  frame.append(box);
  const place = (event) => {
    const area = canvas.getBoundingClientRect();
    return { x: Math.min(Math.max(event.clientX - area.left, 0), line.width), y: event.clientY - area.top };
  };
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || event.pointerType === "touch") return;
    from = Math.max(line.left, place(event).x);
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    const { x, y } = place(event);
    if (from === null) {
      const span = line.find(x, y);
      if (span || line.chosen) line.point(span, x, y);
      return;
    }
    const ends = [from, Math.max(line.left, x)].sort((a, b) => a - b);
    box.hidden = false;
    Object.assign(box.style, { left: ends[0] + "px", width: ends[1] - ends[0] + "px", top: AXIS + "px", height: frame.clientHeight - AXIS + "px" });
  });
  const end = (event) => {
    if (from === null) return;
    const ends = [from, Math.max(line.left, place(event).x)].sort((a, b) => a - b).map((x) => [x, line.time(x)]);
    if (event.type === "pointerup" && ends[1][0] - ends[0][0] >= 8) line.show(ends[0][1], ends[1][1]);
    box.hidden = true;
    from = null;
  };
  canvas.addEventListener("pointerup", end);
  canvas.addEventListener("pointercancel", end);
  canvas.addEventListener("pointerleave", () => line.point(null));
  canvas.addEventListener("dblclick", () => line.reset());
  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && document.activeElement !== canvas) return; // else the page scrolls, as everywhere
    event.preventDefault();
    if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) line.pan((event.deltaX || event.deltaY) / 1000);
    else line.zoom(event.deltaY < 0 ? 0.8 : 1.25, place(event).x);
  }, { passive: false });
  line.scroll.addEventListener("scroll", () => line.point(null));
  new ResizeObserver(() => line.draw()).observe(line.scroll);
}

function timelineTools(line) {
  const button = (name, words, call) => make("button", { type: "button", title: words, "aria-label": words, on: { click: call } }, name);
  const reset = button("Reset", "Show everything again", () => line.reset());
  line.range = make("span", { class: "label", role: "status" });
  line.changed = () => {
    reset.disabled = line.isWhole;
    line.range.textContent = `${seconds(line.from)} to ${seconds(line.to)}`;
  };
  return make("div", { class: "tools" }, make("span", { class: "choice", role: "group", "aria-label": "Zoom" }, make("span", { class: "label" }, "Zoom"), button("+", "Zoom in", () => line.zoom(0.5)), button("−", "Zoom out", () => line.zoom(2)), reset),
              make("span", { class: "choice", role: "group", "aria-label": "Move" }, make("span", { class: "label" }, "Move"), button("◀", "Earlier", () => line.pan(-0.25)), button("▶", "Later", () => line.pan(0.25))), line.range);
}

function totalsFigure(line, name) {
  const rows = totalRows(line), units = [null, null, null, "seconds", "percent", "seconds"], title = `Where the time goes: ${name}`;
  const csv = make("button", { type: "button", class: "csv", on: { click: () => download(`${fileSafe(title)}.csv`, csvOf(rows)) } }, "Download CSV");
  return make("figure", { class: "totals" }, make("figcaption", {}, make("h3", {}, title), make("p", {}, "The total time of all spans of a name. Spans count on each thread, stream and rank, and those within others count in both, so that shares may add up to more than the trace's length.")),
              make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": `Table: ${title}` }, tableOf(rows.map((row, i) => (i ? row : ["name", "kind", "spans", "total", "share", "longest"])), title, units)), csv);
}

function showTimeline(parent, data) {
  const line = new Timeline(data), name = text(line.facts, "name"), title = `Timeline: ${name}`, hint = `${line.id}-hint`, program = text(line.facts, "program");
  line.canvas = make("canvas", { tabindex: 0, role: "img", id: line.id, "aria-label": `${title}: ${line.tracks.length} tracks over ${seconds(line.length)}. The tables below have the same values.`, "aria-describedby": hint, on: { keydown: (event) => timelineKey(line, event), blur: () => line.point(null) } });
  line.live = make("p", { class: "hidden", "aria-live": "polite" });
  line.tip = make("div", { class: "tip", hidden: true });
  const space = make("div", { class: "space" }), most = 300, rowsNow = () => spanRows(line);
  line.scroll = make("div", { class: "tracks" }, line.canvas, space);
  line.frame = make("div", { class: "frame" }, line.scroll, line.tip);
  line.point = (span, x, y) => pointAt(line, span, x, y);
  line.size = (whole) => {
    const high = Math.min(whole ? 4000 : 460, AXIS + line.height + 4);
    line.frame.style.height = line.canvas.style.height = high + "px";
    space.style.height = Math.max(0, AXIS + line.height + 4 - high) + "px";
  };
  const notes = timelineNotes(line.facts), seen = make("div", {});
  const table = lazyDetails("Table of the spans that are seen", () => seen, "data"), refresh = () => {
    const rows = rowsNow(), left = rows.length - 1 - most;
    seen.replaceChildren(make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": `Table: ${title}` }, tableOf(rows.slice(0, most + 1), title, [null, null, null, "seconds", "seconds", null, "seconds"])),
                         ...(left > 0 ? [make("p", {}, `${left} more are in the CSV; zoom in to see them here.`)] : []));
  };
  table.addEventListener("toggle", () => table.open && refresh());
  table.fill = () => { if (table.childElementCount === 1) table.append(seen); refresh(); };
  const csv = make("button", { type: "button", class: "csv", on: { click: () => download(`${fileSafe(title)}.csv`, csvOf(rowsNow())) } }, "Download CSV");
  const origin = make("details", { class: "where" }, make("summary", {}, `Made with ${program ? `${program} ${text(line.facts, "version")}` : "a program that the trace does not name"}, a trace of ${number(line.facts, "spans")} spans on ${number(line.facts, "tracks")} tracks`),
                      make("dl", { class: "origin" }, make("dt", {}, "Command"), make("dd", {}, program === "tessera" ? `tessera … --trace ${quoted(name)}` : "unknown"), make("dt", {}, "Trace"), make("dd", {}, name)));
  parent.append(make("figure", { class: "timeline" }, make("figcaption", {}, make("h3", {}, title), make("p", {}, "One track for each thread and stream of each rank; a span lies below the one that contains it.")), timelineTools(line),
    make("div", { class: "legend", role: "group", "aria-label": "Kinds of spans; press one to hide or show it" }, timelineLegend(line)), line.frame, line.live,
    make("p", { class: "hidden", id: hint }, "Plus and minus zoom, left and right arrows move, with Shift they go from span to span, up and down arrows scroll, 0 shows everything again."),
    notes.length ? make("ul", { class: "notes" }, notes.map((note) => make("li", {}, note + "."))) : null, make("div", { class: "below" }, table, csv), origin), totalsFigure(line, name));
  line.size(false);
  connectTimeline(line);
  line.reset();
}

function timelinePage(body) {
  for (const data of list(DATA, "timelines")) showTimeline(body, data);
}
