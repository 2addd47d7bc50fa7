// Puts the page together: head, list of files, sections chosen by what the records hold.

const KNOWN = ["study:size", "study:batch", "study:device", "study:stats", "study:dem", "study:train", "study:scaling", "reconstruct", "log", "train", "denoise", "fill", "detect", "plan"];

function fileNotes(file) {
  const notes = [];
  if (number(file, "stride") > 1) notes.push(`too many records for a page: one of ${file.stride} is shown`);
  if (number(file, "not_numbers") > 0) notes.push(`${file.not_numbers} values are NaN or infinite and are left out`);
  if (at(file, "cut_short") === true) notes.push("the last line is not complete and is left out");
  const own = DATA.records.filter((entry) => DATA.files[entry.file] === file);
  const shortened = own.filter((entry) => entry.shortened).length, versions = unique(own.map((entry) => text(entry.record, "version")).filter(Boolean));
  if (shortened) notes.push(`${shortened} record${shortened === 1 ? " has" : "s have"} lists too long for a page, of which some elements are shown`);
  const other = own.some((entry) => engineOf(entry.record) === "tessera" && text(entry.record, "version") && text(entry.record, "version") !== DATA.version);
  if (other) notes.push(`made by version ${some(versions, 3).join(", ")}; this page is of ${DATA.version}`);
  return notes.join("; ");
}

function theme(choice) {
  document.documentElement.dataset.theme = choice;
  for (const figure of [...FIGURES, ...TIMELINES]) figure.draw();
}

function head() {
  const buttons = choice("Colours", ["as the system", "light", "dark"], 0, (i) => theme(["auto", "light", "dark"][i]));
  return make("header", {}, make("h1", {}, document.title), make("div", { class: "tools" }, buttons, make("button", { type: "button", on: { click: () => window.print() } }, "Print")));
}

function filesTable() {
  const rows = [["file", "records", "shown", "notes"], ...DATA.files.map((file) => [text(file, "name"), number(file, "lines"), number(file, "kept"), fileNotes(file)]),
    ...list(DATA, "timelines").map((line) => [text(line, "facts.name"), number(line, "facts.events"), number(line, "facts.drawn"), `a trace of ${number(line, "facts.spans")} spans`])];
  return make("section", { id: "files", "aria-labelledby": "files-title" }, make("h2", { id: "files-title", tabindex: -1 }, "Records"), make("div", { class: "scroll" }, tableOf(rows, "Files of this page")));
}

function build() {
  const nav = make("nav", { "aria-label": "Sections" }), sections = make("main", { id: "sections" });
  document.documentElement.dataset.theme = "auto";
  document.getElementById("page").append(make("a", { class: "skip", href: "#sections" }, "To the charts"), head(), nav, sections);
  section("changes", "What changed", "", comparePage);
  section("size", "Image size", "How memory and time grow with the image.", sizePage);
  section("batch", "Batches", "How many patches at once pay off, and what they cost.", batchPage);
  section("device", "CPU or GPU", "Whole jobs on each device, and where one overtakes the other.", devicePage);
  section("scaling", "Scaling", "Several ranks on one job. Simulated figures are dotted.", scalingPage);
  section("reconstruct", "Reconstruction", "Plug-and-play iterations: quality, time and memory.", reconstructPage);
  section("train", "Training", "", trainingPage);
  section("fill", "Elevation maps", "", (body) => { demPage(body); jobPage("fill")(body); });
  section("detect", "Hyperspectral cubes", "", (body) => { statsPage(body); jobPage("detect")(body); });
  section("denoise", "Denoising", "", jobPage("denoise"));
  section("plans", "Plans", "What jobs would take; nothing was run.", jobPage("plan"));
  section("timeline", "Timeline", "Where the time went, from traces.", timelinePage);
  section("others", "Other records", "Records of kinds that this page has no charts of its own for: choose what to see.", explorerPage(KNOWN));
  sections.append(filesTable());
  SECTIONS.push({ id: "files", title: "Records" });
  nav.append(make("ul", {}, SECTIONS.map(({ id, title }) => make("li", {}, make("a", { href: `#${id}` }, title)))));
  document.getElementById("page").append(make("footer", {}, `Made by tessera ${DATA.version}. Charts: Chart.js ${Chart.version} (MIT License).`));
}

// Paper is white: charts are drawn in light colours for it, and what was measured is opened.
let shown = "auto";
addEventListener("beforeprint", () => {
  shown = document.documentElement.dataset.theme;
  for (const line of TIMELINES) line.size(true);
  theme("light");
  for (const details of document.querySelectorAll("details.where")) details.open = true;
});
addEventListener("afterprint", () => {
  for (const line of TIMELINES) line.size(false);
  theme(shown);
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => theme(document.documentElement.dataset.theme));
Chart.defaults.font.family = "system-ui, sans-serif";
Chart.defaults.font.size = 13;
build();
