// The records of this page, what kind each is, and where it comes from.

const DATA = JSON.parse(document.getElementById("data").textContent);

/** A record with its place: entry.record, entry.file (index), entry.line, entry.index (in DATA.records). */
const ENTRIES = DATA.records.map((entry, index) => ({ ...entry, index, kind: kindOf(entry.record) }));

function kindOf(record) {
  if (isText(record.study)) return "study:" + record.study;
  if (isText(record.command)) return record.command;
  if (isNumber(record.step) && ["loss", "psnr_db", "validation_loss"].some((key) => isNumber(record[key]))) return "log";
  return "other";
}

const ofKind = (...kinds) => ENTRIES.filter((entry) => kinds.includes(entry.kind));
const fileName = (entry) => text(DATA.files[entry.file], "name");

/** The program that made a record: peers have a name of their own, and their version. */
function engineOf(record) {
  return text(record, "engine") || "tessera";
}

function threadsOf(record) {
  const threads = number(record, "threads"), ranks = number(record, "ranks");
  const parts = [];
  if (threads !== null) parts.push(`${threads} thread${threads === 1 ? "" : "s"}`);
  if (ranks !== null && ranks > 1 && text(record, "study") !== "scaling") parts.push(`${ranks} ranks`);
  return parts.join(", ");
}

/** Where records were made: "tessera 0.1.0 on Neoverse-V1 (cpu), 2 threads, fp32". */
function whereOf(record) {
  const version = text(record, "version") || text(record, "torch"), device = text(record, "device");
  const simulated = at(record, "simulated") === true, name = (simulated && text(record, "machine")) || text(record, "device_name") || device;
  const devices = name ? [] : unique(list(record, "predicted").map((one) => text(one, "device_name")).filter(Boolean)).slice(0, 4);
  let words = engineOf(record) + (version ? " " + version : "");
  if (name) words += `${simulated ? ", simulated," : ""} on ${name}${device && name !== device ? ` (${device})` : ""}`;
  if (devices.length) words += `, for ${devices.join(" and ")}`;
  for (const more of [threadsOf(record), text(record, "precision")]) if (more) words += ", " + more;
  return words;
}

function quoted(word) {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : "'" + word.replace(/'/g, "'\\''") + "'";
}

/** The command as the record has it; without one, the verb and the study. */
function commandOf(record) {
  const words = list(record, "command_line").filter(isText);
  if (words.length) return shorten(words.map(quoted).join(" "), 400);
  if (engineOf(record) !== "tessera") return `a script of ${engineOf(record)} (its record does not tell the command)`;
  const verb = text(record, "command") || (isText(record.study) ? "bench" : "");
  if (!verb) return "";
  return `tessera ${verb}${isText(record.study) && verb === "bench" ? " " + text(record, "study") : ""} … (the record does not tell the options)`;
}

function some(values, most) {
  const all = unique(values.filter(Boolean));
  return all.length > most ? [...all.slice(0, most), `and ${all.length - most} more`] : all;
}

/** What a chart says of its origin: [name, values]. */
function originOf(entries) {
  const files = [...groupBy(entries, (entry) => entry.file)].map(
    ([, own]) => `${fileName(own[0])}, line${own.length > 1 ? "s" : ""} ${ranges(own.map((entry) => entry.line))}`);
  return [
    ["Made with", some(entries.map((entry) => whereOf(entry.record)), 6)],
    ["Command", some(entries.map((entry) => commandOf(entry.record)), 4)],
    ["Records", some(files, 6)],
  ].filter(([, values]) => values.length);
}

/**
 * Names for the lines of a chart: of the given fields those that differ between the entries, and the file if two of them
 * have the same line. A record that lacks a field does not differ in it. A field is a path or [path, words of a value].
 */
function namerOf(entries, fields) {
  const read = fields.map((field) => (isText(field) ? (e) => text(e.record, field) : (e) => field[1](at(e.record, field[0]), e.record)));
  const used = read.filter((get, i) => i === 0 || unique(entries.map(get).filter(Boolean)).length > 1);
  const name = (entry) => used.map((get) => get(entry)).filter(Boolean).join(", ");
  const files = groupBy(entries, name);
  const shared = [...files.values()].some((own) => unique(own.map((e) => e.file)).length > 1);
  return shared ? (entry) => `${name(entry)} (${fileName(entry)})` : name;
}

const engineField = ["engine", (value, record) => engineOf(record)];
