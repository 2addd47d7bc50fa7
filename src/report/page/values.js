"use strict";
// Reading values of records, which may come from anywhere, and writing them for people. Nothing here trusts a type.

const isNumber = (value) => typeof value === "number" && Number.isFinite(value);
const isText = (value) => typeof value === "string";
const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

/** The value at a path such as "measured.peak_bytes.total"; undefined if it is not there. */
function at(record, path) {
  let value = record;
  for (const key of path.split(".")) {
    if (typeof value !== "object" || value === null || !Object.prototype.hasOwnProperty.call(value, key)) return undefined;
    value = value[key];
  }
  return value;
}

function number(record, path) {
  const value = at(record, path);
  return isNumber(value) ? value : null;
}

function text(record, path) {
  const value = at(record, path);
  return isText(value) ? shorten(value, 200) : isNumber(value) || typeof value === "boolean" ? String(value) : "";
}

/** Bytes that were counted: a peer that cannot count them writes 0. */
function counted(record, path) {
  const value = number(record, path);
  return value > 0 ? value : null;
}

const list = (record, path) => (Array.isArray(at(record, path)) ? at(record, path) : []);
const shorten = (words, most) => (words.length > most ? words.slice(0, most - 1) + "…" : words);
const unique = (values) => [...new Set(values)];
const sum = (values) => values.reduce((a, b) => a + b, 0);

function groupBy(items, keyOf) {
  const groups = new Map();
  for (const item of items) {
    const key = keyOf(item);
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(item);
  }
  return groups;
}

/** Four significant digits, without exponents where they do not help; all digits of whole numbers. */
function plain(value, digits = 4) {
  if (!isNumber(value)) return "–";
  if (Number.isInteger(value) && Math.abs(value) < 1e15) return String(value);
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-4 || size >= 1e9)) return value.toExponential(digits - 1);
  return String(Number(value.toPrecision(size >= 1000 ? Math.max(digits, Math.ceil(Math.log10(size))) : digits)));
}

// Units in which quantities are shown; a chart takes one for all its values, by the largest.
const SCALES = {
  bytes: [[2 ** 40, "TiB"], [2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"], [1, "bytes"]],
  seconds: [[1, "s"], [1e-3, "ms"], [1e-6, "µs"]],
  percent: [[0.01, "%"]],
};

/** [factor, name] of the unit for values up to `largest`. */
function unitFor(unit, largest) {
  const scales = SCALES[unit];
  if (!scales) return [1, unit || ""];
  return scales.find(([factor]) => largest >= factor) || scales[scales.length - 1];
}

/** A value with its unit, such as "12.3 MiB". */
function withUnit(value, unit) {
  if (!isNumber(value)) return "–";
  const [factor, name] = unitFor(unit, Math.abs(value));
  return plain(value / factor) + (name ? " " + name : "");
}

/** "1–4, 7" */
function ranges(numbers) {
  const sorted = unique(numbers).sort((a, b) => a - b);
  const parts = [];
  for (let i = 0; i < sorted.length; i++) {
    const first = sorted[i];
    while (i + 1 < sorted.length && sorted[i + 1] === sorted[i] + 1) i++;
    parts.push(first === sorted[i] ? String(first) : `${first}–${sorted[i]}`);
  }
  return parts.length > 8 ? `${parts[0]} … ${parts[parts.length - 1]}` : parts.join(", ");
}

/** Makes an element: attributes, then children, which are elements or texts. Texts are never markup. */
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "on") for (const [event, call] of Object.entries(value)) element.addEventListener(event, call);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, String(value));
  }
  for (const child of children.flat()) if (child !== null && child !== undefined) element.append(child);
  return element;
}
