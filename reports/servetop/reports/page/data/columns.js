// The page's data: columns as typed arrays, and how values are written.
"use strict";
const DATA = JSON.parse(document.getElementById("data").textContent);

const ARRAYS = { f4: Float32Array, u1: Uint8Array, u2: Uint16Array, u4: Uint32Array };

/** Return the typed array of a column. */
function unpacked(column) {
  const text = atob(column.data);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i += 1) bytes[i] = text.charCodeAt(i);
  return new ARRAYS[column.type](bytes.buffer);
}

/** Return the values of a column for a chart: null where a value is unknown. */
function chartValues(column) {
  return Array.from(unpacked(column), (value) => (Number.isFinite(value) ? value : null));
}

/** Return an element with attributes and children; texts become text nodes. */
function make(name, attributes, ...children) {
  const found = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) found.setAttribute(key, value);
  found.append(...children);
  return found;
}

/** Return a colour of the style sheet, such as `c0`. */
function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

/** Return a value with three digits; those behind the point may be dropped if they are 0. */
function threeDigits(value, always = false) {
  if (value === 0) return "0";
  const digits = Math.min(6, Math.max(0, 2 - Math.floor(Math.log10(Math.abs(value)) + 1e-9)));
  return value.toLocaleString("en", { minimumFractionDigits: always ? digits : 0, maximumFractionDigits: digits });
}

const UNITS = {
  rate: (value) => threeDigits(value),
  count: (value) => threeDigits(value),
  seconds: (value) => (value < 0.9995 ? `${threeDigits(value * 1000)} ms` : `${threeDigits(value)} s`),
  share: (value) => `${threeDigits(value * 100)} %`,
  per_second: (value) => `${threeDigits(value)}/s`,
  watts: (value) => `${threeDigits(value)} W`,
};

/** Return a value with its unit, or a dash if it is unknown. */
function written(value, unit) {
  return value === null || value === undefined || !Number.isFinite(value) ? "–" : UNITS[unit](value);
}

/** Return a time of the run, such as 2:14. */
function clock(seconds) {
  const whole = Math.max(0, Math.floor(seconds + 1e-9));
  const parts = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  const texts = parts[0] > 0 ? [parts[0], String(parts[1]).padStart(2, "0")] : [parts[1]];
  return [...texts, String(parts[2]).padStart(2, "0")].join(":");
}
