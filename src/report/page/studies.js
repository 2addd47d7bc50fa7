// The studies of `tessera bench` and of its peers.

const modelOf = (record) => text(record, "model").replace(/^random:/, "") || text(record, "network") || "model";
const numbered = (path, one, many) => [path, (value) => (isNumber(value) ? `${value} ${value === 1 ? one : many}` : "")];
const lineFields = [engineField, "precision", "device_name", numbered("threads", "thread", "threads"), numbered("ranks", "rank", "ranks")];

function sizePage(body) {
  const note = "Width of the image against memory and time. Round marks: widths divisible by 64; triangles: others.";
  for (const [model, entries] of groupBy(ofKind("study:size"), (entry) => modelOf(entry.record))) {
    const name = namerOf(entries, lineFields), where = grid(body), width = (entry) => number(entry.record, "input.width");
    const mark = (entry) => (width(entry) % 64 === 0 ? "circle" : "triangle");
    const point = (entry, ys) => ({ x: width(entry), mark: mark(entry), y: ys.map((path) => (path.includes("bytes") ? counted : number)(entry.record, path)) });
    const x = { label: "width", unit: "pixels" };
    drawFigure(where, { title: `${model}: memory by width`, what: note, entries, x, measures: [MEMORY],
      series: withPlanned(linesOf(entries, name, (e) => point(e, ["measured.peak_bytes.total"])), linesOf(entries, name, (e) => point(e, ["plan.peak_bytes.total"]))) });
    drawFigure(where, { title: `${model}: time by width`, what: "Time of one pass over the image, and what follows from it.", entries, x,
      measures: [TIME, { label: "throughput", unit: "Mpixel/s", fromZero: true }, { label: "rate", unit: "TFLOP/s", fromZero: true }],
      series: withPlanned(linesOf(entries, name, (e) => point(e, ["measured.seconds", "measured.megapixels_per_second", "measured.tflops"])),
                          linesOf(entries, name, (e) => point(e, ["plan.seconds"]))) });
  }
}

function batchPage(body) {
  const entries = ofKind("study:batch").filter((entry) => at(entry.record, "auto") !== true);
  const chosen = ofKind("study:batch").filter((entry) => at(entry.record, "auto") === true);
  const groups = groupBy(entries, (entry) => `${modelOf(entry.record)}, patches of ${text(entry.record, "patch")}`);
  for (const [title, own] of groups) {
    const where = grid(body), x = { label: "batch", unit: "patches", log: true };
    const name = namerOf(own, [...lineFields, ["transfer", (value) => (value === true ? "with transfer" : value === false ? "data on the device" : "")]]);
    const patches = (record) => (number(record, "input.height") * number(record, "input.width")) / number(record, "patch") ** 2;
    const rates = (record) => {
      const seconds = number(record, "measured.seconds"), images = number(record, "images_per_second") ?? (seconds ? 1 / seconds : null);
      return [isNumber(images) && isNumber(patches(record)) ? images * patches(record) : null, images];
    };
    const measures = [{ label: "patches/s", unit: "patches/s", fromZero: true }, { label: "images/s", unit: "images/s", fromZero: true }];
    const picks = chosen.filter((entry) => `${modelOf(entry.record)}, patches of ${text(entry.record, "patch")}` === title);
    drawFigure(where, { title: `${title}: memory by batch`, what: "Memory of a run that takes so many patches at once.", entries: own, x, measures: [MEMORY],
      series: withPlanned(linesOf(own, name, (e) => ({ x: number(e.record, "batch"), y: [counted(e.record, "measured.peak_bytes.total")] })),
                          linesOf(own, name, (e) => ({ x: number(e.record, "batch"), y: [number(e.record, "plan.peak_bytes.total")] }))) });
    drawFigure(where, { title: `${title}: throughput by batch`, what: "One image cut into patches: patches and whole images a second.", entries: [...own, ...picks], x, measures,
      series: [...linesOf(own, name, (e) => ({ x: number(e.record, "batch"), y: rates(e.record) })),
               ...linesOf(picks, () => "the planner's choice", (e) => ({ x: number(e.record, "batch"), y: rates(e.record), mark: "star" }), { kind: "points" })] });
  }
}

/** Seconds of a job on the CPU and on other devices: measured, or predicted if nothing was run. */
function deviceJobs() {
  const jobs = [];
  for (const entry of ofKind("study:device")) {
    const name = text(entry.record, "workload");
    if (!name) continue;
    const engine = text(entry.record, "engine"), by = engine && engine !== "tessera" ? `, ${engine}` : "";
    const measured = { cpu: number(entry.record, "measured.cpu_seconds"), cuda: number(entry.record, "measured.cuda_seconds") };
    if (isNumber(measured.cpu) || isNumber(measured.cuda)) jobs.push({ entry, name, by, how: "measured", host: measured.cpu, others: [[`GPU${by}`, measured.cuda]] });
    const predicted = list(entry.record, "predicted").filter(isObject);
    const host = predicted.find((one) => text(one, "device") === "cpu");
    const others = predicted.filter((one) => text(one, "device") !== "cpu").map((one) => [text(one, "device_name") || "GPU", number(one, "seconds")]);
    if (host) jobs.push({ entry, name, by, how: "predicted", host: number(host, "seconds"), others });
  }
  return jobs;
}

/** Bars of jobs: one for each device and engine. A job that was recorded again gets a row of its own. */
function deviceBars(body, title, jobs) {
  const rows = [], counts = new Map(), placed = jobs.map((job) => {
    const key = `${job.name}${job.by}`, count = counts.get(key) ?? 0, row = `${job.name}\n${count}`;
    counts.set(key, count + 1);
    if (!rows.includes(row)) rows.push(row);
    return { ...job, x: rows.indexOf(row) };
  });
  const line = (name, own, read) => ({ name, points: own.map((job) => ({ x: job.x, y: [read(job)] })).filter((point) => isNumber(point.y[0])) });
  const bars = [...groupBy(placed, (job) => job.by)].flatMap(([by, own]) => [line(`CPU${by}`, own, (job) => job.host),
    ...unique(own.flatMap((job) => job.others.map(([name]) => name))).map((name) => line(name, own, (job) => otherDevice(job, name)))]).filter((each) => each.points.length);
  drawFigure(body, { title, what: "Whole jobs, with opening the device and reading and writing files.", entries: jobs.map((job) => job.entry), bars: true, wide: true, seriesName: "device",
    height: 120 + rows.length * (10 + 11 * bars.length), x: { label: "", words: rows.map((row) => row.split("\n")[0]) }, measures: [{ ...TIME, log: true }], series: bars });
}

const otherDevice = (job, name) => (job.others.find(([own]) => own === name) || [])[1];

function devicePage(body) {
  for (const [how, jobs] of groupBy(deviceJobs(), (job) => job.how)) {
    const peers = new Set(jobs.filter((job) => job.by).map((job) => job.name)), both = jobs.filter((job) => peers.has(job.name)), ours = jobs.filter((job) => !peers.has(job.name));
    if (both.length) deviceBars(body, `Jobs on each device beside peers, ${how}`, both);
    if (ours.length) deviceBars(body, `Jobs on each device, ${how}`, ours);
    const hosts = jobs.map((job) => job.host).filter((value) => value > 0), low = Math.min(...hosts), high = Math.max(...hosts), devices = unique(jobs.flatMap((job) => job.others.map(([name]) => name)));
    const lines = devices.map((name) => ({ name, kind: "points", points: jobs.filter((job) => job.host > 0 && otherDevice(job, name) > 0).map((job) => ({ x: job.host, y: [otherDevice(job, name)], note: job.name })) }));
    if (hosts.length) drawFigure(body, { title: `CPU against GPU, ${how}`, what: "Each mark is a job: its time on the CPU across, on the other device upwards. Below the line of equal time the other device is faster.", entries: jobs.map((job) => job.entry), wide: true, tall: true,
      x: { label: "time on the CPU", unit: "seconds", log: true }, measures: [{ label: "time on the other device", unit: "seconds", log: true }],
      series: [...lines.filter((line) => line.points.length), { name: "break-even: equal time", plain: true, dash: "guide", kind: "line", points: [{ x: low, y: [low] }, { x: high, y: [high] }] }] });
  }
}

/** What a sweep changes, and where records have it; other workloads are compared one by one. */
const SWEEPS = new Map([["samples", "input.samples"], ["batch", "input.batch"], ["size", "input.height"], ["channels", "input.channels"]]);

function statsPage(body) {
  const points = ofKind("study:stats").filter((entry) => text(entry.record, "workload"));
  const crossings = ofKind("study:stats").filter((entry) => text(entry.record, "break_even"));
  const seconds = (record) => number(record, "measured.seconds") ?? number(record, "seconds");
  for (const [phase, entries] of groupBy(points, (entry) => text(entry.record, "phase") || "statistics")) {
    for (const [sweep, own] of groupBy(entries, (entry) => (SWEEPS.has(text(entry.record, "sweep")) ? text(entry.record, "sweep") : "workload"))) {
      const axis = SWEEPS.get(sweep);
      const name = namerOf(own, [engineField, "variant", "device", "source", "precision", ["plan.condensed", (value) => (value === true ? "condensed" : value === false ? "not condensed" : "")]]);
      if (axis && own.some((entry) => isNumber(number(entry.record, axis)))) {
        drawFigure(body, { title: `Cubes, ${phase}: time by ${sweep}`, what: "One reading of all samples on each device; “host” and “device” say where the samples were.", entries: own, wide: true,
          x: { label: sweep, log: true }, measures: [{ ...TIME, log: true, fromZero: false }, { label: "samples/s", unit: "samples/s", fromZero: true }],
          series: linesOf(own, name, (e) => ({ x: number(e.record, axis), y: [seconds(e.record), number(e.record, "measured.samples_per_second")] })) });
      } else {
        const words = unique(own.map((entry) => text(entry.record, "workload")));
        drawFigure(body, { title: `Cubes, ${phase}: time by workload`, entries: own, bars: true, wide: true, x: { label: "", words }, measures: [{ ...TIME, log: true }],
          series: [...groupBy(own, name)].map(([line, mine]) => ({ name: line, points: words.map((word, x) => ({ x, y: [seconds((mine.find((e) => text(e.record, "workload") === word) || {}).record)] })) })) });
      }
    }
  }
  facts(body, "From where on the card is faster", crossings.flatMap((entry) => [["open", "card open"], ["with_opening", "with opening it"], ["resident", "samples on the card"]].map(
    ([key, words]) => [`${text(entry.record, "break_even")}, ${words}`, text(entry.record, key)])));
}

function demPage(body) {
  const entries = ofKind("study:dem"), where = grid(body);
  if (!entries.length) return;
  const name = namerOf(entries, [engineField, "precision", "sampler", "device_name"]), x = { label: "batch", unit: "tiles", log: true };
  drawFigure(where, { title: "DEM sampler: throughput by batch", what: "Steps of the diffusion sampler on tiles of an elevation map.", entries, x,
    measures: [{ label: "tile-steps/s", unit: "tile-steps/s", fromZero: true }, { label: "rate", unit: "TFLOP/s", fromZero: true }, { label: "time of a step", unit: "ms", fromZero: true }, { label: "device busy", unit: "share", fromZero: true }, { label: "energy", unit: "J/tile-step", fromZero: true }],
    series: linesOf(entries, name, (e) => ({ x: number(e.record, "batch"), y: ["tile_steps_per_second", "tflops", "ms_per_step", "gpu_busy", "joules_per_tile_step"].map((key) => number(e.record, `measured.${key}`)) })) });
  const bytes = (record) => counted(record, "measured.peak_bytes.total"), planned = (record) => number(record, "plan.peak_bytes.total");
  drawFigure(where, { title: "DEM sampler: memory by batch", what: "By the driver's count where it is known; PyTorch does not count tensors of captured graphs.", entries, x,
    measures: [MEMORY, { ...MEMORY, label: "counted memory" }],
    series: withPlanned(linesOf(entries, name, (e) => ({ x: number(e.record, "batch"), y: [number(e.record, "measured.driver_bytes") ?? bytes(e.record), bytes(e.record)] })),
                        linesOf(entries, name, (e) => ({ x: number(e.record, "batch"), y: [planned(e.record), planned(e.record)] }))) });
}

/** Records of ranks: measured lines are solid, simulated ones dotted, in one chart for each problem and size. */
function scalingPage(body) {
  const simulated = (entry) => at(entry.record, "simulated") === true, ranks = (entry) => number(entry.record, "ranks");
  const sizeOf = (record) => [number(record, "input.depth"), number(record, "input.height"), number(record, "input.width")].filter((n) => n > 1).join(" × ");
  for (const [title, entries] of groupBy(ofKind("study:scaling"), (entry) => [text(entry.record, "problem") || "job", sizeOf(entry.record)].filter(Boolean).join(", "))) {
    const where = grid(body), x = { label: "ranks", log: true };
    const name = namerOf(entries, [["simulated", (value) => (value === true ? "simulated" : "measured")], engineField, "machine", "device_name", "precision", "scheme", "cut"]);
    const lines = (read) => [true, false].reverse().flatMap((kind) => linesOf(entries.filter((entry) => simulated(entry) === kind), name, (e) => ({ x: ranks(e), y: read(e.record) }), kind ? { dash: "simulated" } : {}));
    const times = lines((record) => [number(record, "seconds")]), bases = new Map();
    for (const line of times) if (line.points.length) bases.set(line.name, line.points[0]);
    const ideal = [...bases].slice(0, 1).map(([own, first]) => ({ name: "ideal", plain: true, dash: "guide", points: (times.find((line) => line.name === own) || { points: [] }).points.map((point) => ({ x: point.x, y: [(first.y[0] * first.x) / point.x] })) }));
    drawFigure(where, { title: `${title}: strong scaling`, what: "Time of one iteration by the number of ranks.", entries, x, measures: [{ ...TIME, log: true, fromZero: false }], series: [...times, ...ideal] });
    drawFigure(where, { title: `${title}: parallel efficiency`, what: "Speedup divided by ranks; 1 is ideal.", entries, x, measures: [{ label: "efficiency", unit: "", fromZero: true }, { label: "speedup", unit: "", fromZero: true }, { label: "efficiency of the denoiser", unit: "", fromZero: true }, { label: "weak efficiency", unit: "", fromZero: true }],
      series: lines((record) => ["efficiency", "speedup", "denoiser_efficiency", "weak_efficiency"].map((key) => number(record, key))) });
    for (const [line, own] of groupBy(entries, name)) partsFigure(where, `${title}: parts, ${line}`, own.sort((a, b) => ranks(a) - ranks(b)));
    drawFigure(where, { title: `${title}: memory of a rank`, entries, x, measures: [MEMORY, { label: "sent", unit: "bytes", fromZero: true }], series: lines((record) => [counted(record, "bytes_per_rank"), number(record, "sent_bytes")]) });
  }
}

function partsFigure(where, title, entries) {
  const parts = [["gradient", "gradient_seconds"], ["denoiser", "denoiser_seconds"], ["communication", "communication_seconds"], ["other", "other_seconds"]].filter(([, key]) => entries.some((entry) => number(entry.record, key) > 0));
  drawFigure(where, { title, what: "Seconds of one iteration, one part upon the other.", entries, bars: true, upright: true, stacked: true, seriesName: "part", x: { label: "ranks", words: entries.map((entry) => text(entry.record, "ranks")) }, measures: [TIME],
    series: parts.map(([words, key]) => ({ name: words, points: entries.map((entry, x) => ({ x, y: [number(entry.record, key)] })) })) });
}
