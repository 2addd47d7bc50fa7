// Single jobs: reconstruct, train, denoise, fill, detect; and records of kinds that this page does not know.

const titleOf = (entry) => `${fileName(entry)}${DATA.files[entry.file].lines > 1 ? `, line ${entry.line}` : ""}`;

function reconstructPage(body) {
  const entries = ofKind("reconstruct").filter((entry) => list(entry.record, "reconstruct.iterations").length);
  if (!entries.length) return;
  const steps = (entry) => list(entry.record, "reconstruct.iterations").filter(isObject);
  const name = namerOf(entries, [["reconstruct.problem", (value) => (isText(value) ? shorten(value, 40) : "reconstruct")], "reconstruct.preset", "device_name", "precision", ["input.height", (value) => (isNumber(value) ? `${value} rows` : "")]]);
  const lines = (pointOf, more) => entries.map((entry) => ({ name: name(entry), ...more, points: steps(entry).map(pointOf).filter((point) => isNumber(point.x) && point.y.some(isNumber)) }));
  const times = new Map(entries.map((entry) => {
    let passed = 0;
    return [entry, steps(entry).map((step) => (passed += (number(step, "gradient_seconds") || 0) + (number(step, "denoise_seconds") || 0)))];
  }));
  const quality = [{ label: "PSNR", unit: "dB" }, { label: "SSIM", unit: "" }], good = (step) => [number(step, "psnr_db"), number(step, "ssim")];
  const where = grid(body);
  drawFigure(where, { title: "Quality by iteration", what: "After each iteration, against the truth.", entries, x: { label: "iteration" }, measures: quality, series: lines((step, i) => ({ x: i + 1, y: good(step) })) });
  drawFigure(where, { title: "Quality by time", what: "The same against the seconds of the iterations so far.", entries, x: { label: "time", unit: "seconds" }, measures: quality,
    series: entries.map((entry) => ({ name: name(entry), points: steps(entry).map((step, i) => ({ x: times.get(entry)[i], y: good(step) })).filter((point) => point.y.some(isNumber)) })) });
  for (const entry of entries) {
    const own = steps(entry), title = name(entry), parts = [["data step", "gradient_seconds"], ["denoiser", "denoise_seconds"], ["communication", "exchange_seconds"]].filter(([, key]) => own.some((step) => isNumber(step[key])));
    drawFigure(where, { title: `Time of each part: ${title}`, what: "Seconds of each iteration, one part upon the other.", entries: [entry], bars: true, upright: true, stacked: true, seriesName: "part",
      x: { label: "iteration", words: own.map((step, i) => String(i + 1)) }, measures: [TIME], series: parts.map(([words, key]) => ({ name: words, points: own.map((step, x) => ({ x, y: [number(step, key)] })) })) });
    const peaks = [["data step", "gradient_peak_bytes"], ["denoiser", "denoise_peak_bytes"]];
    drawFigure(where, { title: `Memory of each part: ${title}`, what: "Peak bytes in each iteration.", entries: [entry], x: { label: "iteration" }, measures: [MEMORY],
      series: peaks.map(([words, key]) => ({ name: words, points: own.map((step, i) => ({ x: i + 1, y: [counted(step, key)] })).filter((point) => isNumber(point.y[0])) })) });
    memoryBars(where, entry, `Memory by category: ${title}`);
  }
  for (const entry of entries) {
    showPictures(body, entry);
    profileFigure(body, entry);
    facts(body, `The job: ${titleOf(entry)}`, jobFacts(entry.record));
  }
}

function trainingPage(body) {
  const logs = [...groupBy(ofKind("log"), (entry) => entry.file)], where = grid(body);
  const line = (pointOf) => logs.map(([, own]) => ({ name: fileName(own[0]), points: own.map(pointOf).filter((point) => point.y.some(isNumber)).sort((a, b) => a.x - b.x) }));
  const entries = [...logs.flatMap(([, own]) => own), ...ofKind("train")], x = { label: "step" }, value = (...keys) => (e) => ({ x: number(e.record, "step"), y: keys.map((key) => number(e.record, key)) });
  if (logs.length) {
    drawFigure(where, { title: "Loss", what: "Of the training batches.", entries, x, measures: [{ label: "loss", log: true }, { label: "norm of the gradients", log: true }], series: line(value("loss", "gradient_norm")) });
    drawFigure(where, { title: "Validation", what: "On images that are not trained with.", entries, x, measures: [{ label: "PSNR", unit: "dB" }, { label: "validation loss" }, { label: "average precision" }],
      series: line(value("psnr_db", "validation_loss", "validation_average_precision")) });
    drawFigure(where, { title: "Learning rate and speed", entries, x, measures: [{ label: "learning rate", fromZero: true }, { label: "samples/s", unit: "samples/s", fromZero: true }, { ...MEMORY, label: "peak memory" }],
      series: line(value("rate", "samples_per_second", "peak_bytes")) });
  }
  for (const entry of ofKind("train")) {
    memoryBars(where, entry, `Memory: training, ${titleOf(entry)}`);
    profileFigure(where, entry);
    facts(body, `Training: ${titleOf(entry)}`, jobFacts(entry.record));
  }
  const peers = ofKind("study:train").filter((entry) => isNumber(number(entry.record, "ms")));
  const words = unique(peers.map((entry) => text(entry.record, "case"))), name = namerOf(peers, [engineField, "mode", "device"]);
  drawFigure(body, { title: "Training steps", what: "Samples a second of whole steps.", entries: peers, bars: true, wide: true, x: { label: "", words }, measures: [{ label: "samples/s", unit: "samples/s" }, { label: "time of a step", unit: "ms" }],
    series: [...groupBy(peers, name)].map(([title, own]) => ({ name: title, points: words.map((word, at) => [at, own.find((e) => text(e.record, "case") === word)]).map(([at, e]) => ({ x: at, y: [number(e?.record, "samples_per_second"), number(e?.record, "ms")] })) })) });
}

function jobFacts(record) {
  const size = [number(record, "input.depth"), number(record, "input.height"), number(record, "input.width")].filter(isNumber).join(" × ");
  const own = at(record, text(record, "command")), tile = list(record, "plan.tile").filter(isNumber).join(" × ");
  return [["input", size && `${size}${number(record, "input.channels") ? `, ${number(record, "input.channels")} channel${number(record, "input.channels") === 1 ? "" : "s"}` : ""}`], ["files", number(record, "input.files") > 1 ? number(record, "input.files") : ""],
    ["device", text(record, "device_name")], ["precision", text(record, "precision")], ["threads", threadsOf(record)], ["model", text(own, "model").split("/").pop()], ["pipeline", text(own, "pipeline")],
    ["plan", tile && `tile ${tile}${isNumber(number(record, "plan.halo")) ? `, halo ${text(record, "plan.halo")}` : ""}, batch ${text(record, "plan.batch")}`], ["reason", text(record, "plan.reason")],
    ["planned time", withUnit(number(record, "plan.seconds"), "seconds")], ["measured time", withUnit(number(record, "measured.seconds"), "seconds")], ["with files", withUnit(number(record, "measured.wall_seconds"), "seconds")],
    ["planned memory", withUnit(number(record, "plan.peak_bytes.total"), "bytes")], ["measured memory", withUnit(number(record, "measured.peak_bytes.total"), "bytes")], ["resident", withUnit(number(record, "measured.resident_bytes"), "bytes")],
    ["PSNR", isNumber(number(record, "quality.psnr_db")) ? `${plain(number(record, "quality.psnr_db"))} dB` : ""], ["SSIM", plain(number(record, "quality.ssim"))], ["RMSE", plain(number(record, "quality.rmse"))],
    ["AUROC", plain(number(record, "quality.auroc"))], ["average precision", plain(number(record, "quality.average_precision"))], ["anomalous pixels", text(own, "anomalous_pixels")], ["void pixels", text(at(own, "voids"), "pixels")],
    ["filled pixels", text(at(own, "voids"), "filled_pixels")], ["tiles", text(own, "tiles")], ["sampler", text(own, "sampler") && `${text(own, "sampler")}, ${text(own, "steps")} steps, ${text(own, "samples")} samples`],
    ["tile-steps/s", plain(number(own, "tile_steps_per_second"))], ["seam ratio", plain(number(own, "seam_ratio"))], ["warning", text(own, "warning")], ["command", commandOf(record)]];
}

function jobPage(...kinds) {
  return (body) => {
    for (const entry of ofKind(...kinds)) {
      const box = make("div", { class: "job" }, make("h3", {}, titleOf(entry)));
      body.append(box);
      showPictures(box, entry);
      const where = grid(box);
      facts(where, "The job", jobFacts(entry.record));
      memoryBars(where, entry, `Memory: ${titleOf(entry)}`);
      filesFigure(where, entry);
      qualityFigures(where, entry);
      profileFigure(where, entry);
      arenaFigure(where, entry);
    }
  };
}

/** The files of a folder that was denoised. */
function filesFigure(where, entry) {
  const files = list(entry.record, "denoise.files").filter(isObject);
  if (files.length < 2) return;
  const key = (path) => files.map((file, x) => ({ x: x + 1, y: [number(file, path)], note: text(file, "name") })).filter((point) => isNumber(point.y[0]));
  drawFigure(where, { title: `Files: ${titleOf(entry)}`, what: "Each file of the folder, in its order.", entries: [entry], x: { label: "file" }, measures: [{ label: "PSNR", unit: "dB" }, TIME, { label: "SSIM", unit: "" }],
    series: [{ name: "files", points: key("seconds").map((point, i) => ({ ...point, y: [number(files[point.x - 1], "psnr_db"), point.y[0], number(files[point.x - 1], "ssim")] })) }] });
}

function qualityFigures(where, entry) {
  const { record } = entry, curve = list(record, "quality.roc").filter((pair) => Array.isArray(pair) && isNumber(pair[0]) && isNumber(pair[1]));
  if (curve.length) drawFigure(where, { title: `ROC curve: ${titleOf(entry)}`, what: `Anomalies found against false alarms, over all thresholds. Area under the curve: ${plain(number(record, "quality.auroc"))}.`, entries: [entry],
    x: { label: "false alarm rate", unit: "" }, measures: [{ label: "recall", unit: "", fromZero: true }],
    series: [{ name: text(record, "detect.pipeline") || "detector", points: curve.map(([x, y]) => ({ x, y: [y] })) }, { name: "chance", plain: true, dash: "guide", points: [{ x: 0, y: [0] }, { x: 1, y: [1] }] }] });
  const phases = list(record, "measured.phases").filter(isObject);
  if (phases.length > 1) drawFigure(where, { title: `Time of each phase: ${titleOf(entry)}`, entries: [entry], bars: true, x: { label: "", words: phases.map((phase) => text(phase, "name")) }, measures: [TIME],
    series: [{ name: "time", points: phases.map((phase, x) => ({ x, y: [number(phase, "seconds")] })) }] });
  const classes = at(record, "quality.by_width"), widths = isObject(classes) ? Object.keys(classes).filter((key) => isNumber(number(classes[key], "rmse"))) : [];
  if (widths.length) drawFigure(where, { title: `Errors by width of the void: ${titleOf(entry)}`, entries: [entry], bars: true, x: { label: "", words: widths }, measures: [{ label: "RMSE", unit: "" }, { label: "MAE", unit: "" }],
    series: [{ name: "filled pixels", points: widths.map((key, x) => ({ x, y: [number(classes[key], "rmse"), number(classes[key], "mae")] })) }] });
}

/** The most expensive layers of a job, as --profile adds them to its record. */
function profileFigure(where, entry) {
  const layers = list(entry.record, "profile.layers").filter((layer) => isObject(layer) && isNumber(layer.seconds));
  if (layers.length) drawFigure(where, { title: `Most expensive layers: ${titleOf(entry)}`, what: "Time of all calls of a layer, and what fraction of the device's limit it reaches.", entries: [entry], bars: true, wide: true, seriesName: "layers",
    height: 120 + 26 * layers.length, x: { label: "", words: layers.map((layer) => text(layer, "name") || "layer") }, measures: [TIME, { label: "share of the time", unit: "" }, { label: "of the device's limit", unit: "" }],
    series: [{ name: "layers", points: layers.map((layer, x) => ({ x, y: ["seconds", "share", "of_limit"].map((key) => number(layer, key)), note: text(layer, "bound") && `bound by ${text(layer, "bound")}` })) }] });
}

/** The activations of a network in their arena: each tensor from its first to its last step, at its place in memory. */
function arenaFigure(where, entry) {
  const tensors = list(entry.record, "arena.tensors").filter((t) => isObject(t) && ["first", "last", "offset", "bytes"].every((key) => isNumber(t[key])));
  if (!tensors.length) return;
  const corners = (t) => [[t.first, t.offset], [t.first, t.offset + t.bytes], [t.last + 1, t.offset + t.bytes], [t.last + 1, t.offset], [t.first, t.offset]];
  drawFigure(where, { title: `Arena over the steps of the network: ${titleOf(entry)}`, what: "Each area is a tensor: from the step that makes it to the last one that reads it, at its place in the one block that holds all activations.", entries: [entry], wide: true,
    x: { label: "step", unit: "" }, measures: [{ label: "place in the arena", unit: "bytes", fromZero: true }],
    series: tensors.map((t) => ({ name: `${text(t, "name") || "tensor"} ${t.first}`, kind: "shape", points: corners(t).map(([x, y]) => ({ x, y: [y], note: `${withUnit(t.bytes, "bytes")}, steps ${t.first} to ${t.last}` })) })) });
}
