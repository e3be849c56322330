"use strict";
// What all parts of the page use: the data, elements, numbers, colours, the tip under the pointer.
const data = JSON.parse(document.getElementById("data").textContent);
const isMeasured = data.totals.measured_cycles !== undefined;
const totalCycles = isMeasured ? data.totals.measured_cycles : data.totals.predicted_cycles;

function element(namespace, tag, attributes, children) {
  const e = namespace ? document.createElementNS(namespace, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name === "tip") withTip(e, value);
    else if (name.startsWith("on")) e.addEventListener(name.slice(2), value);
    else e.setAttribute(name, value);
  }
  for (const child of children) if (child !== null && child !== undefined) e.append(child);
  return e;
}
const html = (tag, attributes, ...children) => element(null, tag, attributes, children);
const svg = (tag, attributes, ...children) => element("http://www.w3.org/2000/svg", tag, attributes, children);
const section = (id, title, hint) => {
  const s = document.getElementById(id);
  s.append(html("h2", {}, title), html("p", {class: "hint"}, hint));
  return s;
};

const count = n => n.toLocaleString("en-US");
const percent = share => (100 * share).toFixed(1) + " %";
const signed = share => (share >= 0.0005 ? "+" : "") + percent(Math.abs(share) < 0.0005 ? 0 : share);
function short(n) {
  for (const [unit, size] of [["G", 1e9], ["M", 1e6], ["k", 1e3]])
    if (n >= size) return parseFloat((n / size).toPrecision(3)) + unit;
  return String(n);
}
function bytes(n) {
  for (const [unit, size] of [["MiB", 1 << 20], ["KiB", 1 << 10]])
    if (n >= size) return (n / size).toFixed(n < 10 * size ? 1 : 0) + " " + unit;
  return n + " B";
}
// Neighbours differ: each layer turns the hue by the golden angle.
const colour = layer => layer < 0 ? "var(--host)" : `oklch(0.66 0.13 ${(250 + layer * 137.508) % 360})`;

const tip = document.getElementById("tip");
function withTip(e, text) {
  e.addEventListener("mousemove", event => {
    tip.textContent = text();
    tip.hidden = false;
    const left = Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 10);
    const top = event.clientY + 18 + tip.offsetHeight > innerHeight ? event.clientY - tip.offsetHeight - 12 : event.clientY + 18;
    tip.style.left = left + "px";
    tip.style.top = top + "px";
  });
  e.addEventListener("mouseleave", () => tip.hidden = true);
}

// A layer that was clicked anywhere is marked everywhere.
const onChoice = [];
const choose = layer => onChoice.forEach(f => f(layer));
