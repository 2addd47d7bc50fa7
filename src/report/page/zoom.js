// Zooming of a chart by its scales: Chart.js has ranges of axes, but no way to choose them. A box drawn with the mouse, the
// wheel while the chart has the focus or Ctrl is held, buttons, and the keys + - 0.

/** The axes that can be zoomed: those of numbers. */
const numericAxes = (chart) => Object.values(chart.scales).filter((scale) => scale.type === "linear" || scale.type === "logarithmic");

function setRange(chart, scale, low, high) {
  if (!isNumber(low) || !isNumber(high) || !(high > low)) return;
  chart.options.scales[scale.id].min = low;
  chart.options.scales[scale.id].max = high;
}

function resetZoom(chart) {
  for (const scale of numericAxes(chart)) {
    delete chart.options.scales[scale.id].min;
    delete chart.options.scales[scale.id].max;
  }
  chart.update("none");
}

const isZoomed = (chart) => numericAxes(chart).some((scale) => isNumber(chart.options.scales[scale.id].max));

/** Zooms by a factor (below 1: closer) around a place of the canvas; without one, around the middle. */
function zoomBy(chart, factor, place) {
  for (const scale of numericAxes(chart)) {
    const horizontal = scale.isHorizontal();
    const start = horizontal ? scale.left : scale.top, end = horizontal ? scale.right : scale.bottom;
    const middle = place ? (horizontal ? place.x : place.y) : (start + end) / 2;
    const ends = [middle + (start - middle) * factor, middle + (end - middle) * factor].map((p) => scale.getValueForPixel(p));
    setRange(chart, scale, Math.min(...ends), Math.max(...ends));
  }
  chart.update("none");
}

function zoomToBox(chart, a, b) {
  for (const scale of numericAxes(chart)) {
    const horizontal = scale.isHorizontal();
    const pixels = horizontal ? [a.x, b.x] : [a.y, b.y];
    if (Math.abs(pixels[0] - pixels[1]) < 8) continue; // a flat box chooses one axis
    const ends = pixels.map((p) => scale.getValueForPixel(p));
    setRange(chart, scale, Math.min(...ends), Math.max(...ends));
  }
  chart.update("none");
}

/** Connects the mouse. The chart is asked for each time, because a change of axes makes a new one. */
function connectZoom(figure, frame) {
  const canvas = figure.canvas, box = make("div", { class: "box", hidden: true });
  let from = null;
  frame.append(box);
  const place = (event) => {
    const area = canvas.getBoundingClientRect(), inside = figure.chart.chartArea;
    return { x: Math.min(Math.max(event.clientX - area.left, inside.left), inside.right),
             y: Math.min(Math.max(event.clientY - area.top, inside.top), inside.bottom) };
  };
  const show = (to) => {
    box.hidden = false;
    box.style.left = canvas.offsetLeft + Math.min(from.x, to.x) + "px";
    box.style.top = canvas.offsetTop + Math.min(from.y, to.y) + "px";
    box.style.width = Math.abs(from.x - to.x) + "px";
    box.style.height = Math.abs(from.y - to.y) + "px";
  };
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || event.pointerType === "touch") return;
    from = place(event);
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (from) show(place(event));
  });
  const end = (event) => {
    if (!from) return;
    const to = place(event), far = Math.max(Math.abs(from.x - to.x), Math.abs(from.y - to.y));
    if (event.type === "pointerup" && far >= 8) {
      zoomToBox(figure.chart, from, to);
      figure.changed();
    }
    box.hidden = true;
    from = null;
  };
  canvas.addEventListener("pointerup", end);
  canvas.addEventListener("pointercancel", end);
  canvas.addEventListener("dblclick", () => {
    resetZoom(figure.chart);
    figure.changed();
  });
  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && document.activeElement !== canvas) return; // else the page scrolls, as everywhere
    event.preventDefault();
    zoomBy(figure.chart, event.deltaY < 0 ? 0.8 : 1.25, place(event));
    figure.changed();
  }, { passive: false });
}
