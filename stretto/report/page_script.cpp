#include "stretto/report/page_parts.h"

namespace stretto::report {

// Replaces the drawn charts by interactive ones (pointer and arrow keys). Texts are inserted by textContent
// only.
const char* const page_script = R"js(
"use strict";
(() => {
const data = JSON.parse(document.getElementById("data").textContent);
const state = {by: "step", log: false, smooth: 0, hidden: new Set()};
const W = 560, H = 250, L = 58, R = 10, T = 10, B = 30;
const make = (name, attributes, text) => {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const key in attributes) node.setAttribute(key, attributes[key]);
  if (text !== undefined) node.textContent = text;
  return node;
};
const ticks = (low, high, count) => {
  const raw = (high - low) / count, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map(f => f * power).find(s => s >= raw * 0.999999);
  const list = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++) list.push(i * step);
  return list;
};
const show = value => {
  const size = Math.abs(value);
  if (value === 0) return "0";
  if (size >= 1e7 || size < 1e-3) return value.toExponential(2);
  if (size >= 1e4) return Math.round(value).toLocaleString("en");
  return String(Number(value.toPrecision(4)));
};
const smoothed = values => {
  if (!state.smooth) return values;
  let sum = 0, weight = 0;
  return values.map(v => {
    if (v === null) return null;
    sum = sum * state.smooth + v; weight = weight * state.smooth + 1;
    return sum / weight;
  });
};
const draw = figure => {
  const chart = data.charts[Number(figure.dataset.chart)];
  const series = chart.series.filter(s => !state.hidden.has(s.run));
  const old = figure.querySelector("svg"), values = figure.querySelector(".values");
  const svg = make("svg", {viewBox: `0 0 ${W} ${H}`, role: "img", tabindex: "0",
    "aria-label": chart.title + ". Left and right arrow keys read values."});
  const usable = v => v !== null && (!state.log || v > 0);
  const scale = v => state.log ? Math.log10(v) : v;
  let x0 = Infinity, x1 = -Infinity, y0 = Infinity, y1 = -Infinity;
  for (const s of series) s.values.forEach((v, i) => {
    if (!usable(v)) return;
    const x = s[state.by][i], y = scale(v);
    x0 = Math.min(x0, x); x1 = Math.max(x1, x); y0 = Math.min(y0, y); y1 = Math.max(y1, y);
  });
  values.textContent = "";
  if (x0 > x1) {
    svg.append(make("text", {x: L, y: H / 2}, "no values"));
    old.replaceWith(svg);
    return;
  }
  if (x0 === x1) { x0 -= 1; x1 += 1; }
  if (y1 - y0 <= Math.abs(y1) * 1e-9) { const m = Math.abs(y0) * 0.1 || 1; y0 -= m; y1 += m; }
  const pad = (y1 - y0) * 0.05; y0 -= y0 >= 0 && y0 < pad && !state.log ? y0 : pad; y1 += pad;
  const px = x => L + (x - x0) / (x1 - x0) * (W - L - R), py = y => H - B - (y - y0) / (y1 - y0) * (H - T - B);
  for (const t of ticks(y0, y1, 5)) {
    svg.append(make("line", {class: "grid", x1: L, x2: W - R, y1: py(t), y2: py(t)}));
    svg.append(make("text", {x: L - 6, y: py(t) + 4, "text-anchor": "end"}, show(state.log ? 10 ** t : t)));
  }
  for (const t of ticks(x0, x1, 6)) {
    if (px(t) > W - R - 44) continue;
    svg.append(make("text", {x: px(t), y: H - B + 16, "text-anchor": "middle"}, show(t)));
  }
  svg.append(make("text", {x: W - R, y: H - B + 16, "text-anchor": "end"}, state.by));
  const curve = (s, list, extra) => {
    let path = "", pen = false, points = 0;
    list.forEach((v, i) => {
      if (!usable(v)) { pen = false; return; }
      path += (pen ? "L" : "M") + px(s[state.by][i]).toFixed(1) + " " + py(scale(v)).toFixed(1);
      pen = true; points++;
    });
    if (!points) return;
    svg.append(make("path", {class: "curve" + extra, d: points === 1 ? path + "h.1" : path,
      style: `stroke:var(--c${s.color % 6})` + (s.dash ? `;stroke-dasharray:${s.dash}` : "") + (points === 1 ? ";stroke-width:6" : "")}));
  };
  for (const s of series) {
    if (state.smooth && !s.evaluation) { curve(s, s.values, " raw"); curve(s, smoothed(s.values), ""); }
    else curve(s, s.values, "");
    if (s.evaluation) s.values.forEach((v, i) => { if (usable(v)) svg.append(make("circle",
      {cx: px(s[state.by][i]), cy: py(scale(v)), r: 3, style: `fill:var(--c${s.color % 6})`})); });
  }
  const cross = make("line", {class: "cross", y1: T, y2: H - B, visibility: "hidden"});
  svg.append(cross);
  const xs = [...new Set(series.flatMap(s => s[state.by]))].sort((a, b) => a - b);
  let at = -1;
  const entry = (s, value) => {
    const item = document.createElement("span"), sign = document.createElement("i"), number = document.createElement("b");
    sign.className = "swatch";
    sign.style.background = `var(--c${s.color % 6})`;
    number.textContent = " " + show(value);
    item.append(sign, s.name, number);
    return item;
  };
  const idle = () => {
    cross.setAttribute("visibility", "hidden");
    values.textContent = "";
    for (const s of series) {
      const last = s.values.findLast(v => v !== null);
      if (last !== undefined) values.append(entry(s, last));
    }
  };
  const report = () => {
    const x = xs[at];
    cross.setAttribute("x1", px(x)); cross.setAttribute("x2", px(x)); cross.setAttribute("visibility", "visible");
    values.textContent = "";
    const head = document.createElement("span");
    head.textContent = state.by + " " + show(x);
    values.append(head);
    for (const s of series) {
      let best = -1;
      s[state.by].forEach((v, i) => { if (best < 0 || Math.abs(v - x) < Math.abs(s[state.by][best] - x)) best = i; });
      if (best < 0 || s.values[best] === null || (s.evaluation && s[state.by][best] !== x)) continue;
      values.append(entry(s, s.values[best]));
    }
  };
  svg.addEventListener("pointermove", event => {
    const box = svg.getBoundingClientRect();
    const x = x0 + ((event.clientX - box.left) / box.width * W - L) / (W - L - R) * (x1 - x0);
    at = xs.reduce((best, v, i) => Math.abs(v - x) < Math.abs(xs[best] - x) ? i : best, 0);
    report();
  });
  svg.addEventListener("pointerleave", idle);
  svg.addEventListener("blur", idle);
  svg.addEventListener("keydown", event => {
    const move = {ArrowRight: 1, ArrowLeft: -1, Home: -xs.length, End: xs.length}[event.key];
    if (!move) return;
    event.preventDefault();
    at = Math.max(0, Math.min(xs.length - 1, at + move));
    report();
  });
  idle();
  old.replaceWith(svg);
};
const redraw = () => document.querySelectorAll("figure").forEach(draw);
document.querySelectorAll(".bar").forEach(bar => { bar.hidden = false; });
document.querySelectorAll("[name=by]").forEach(input => input.addEventListener("change", () => { state.by = input.value; redraw(); }));
document.getElementById("log").addEventListener("change", event => { state.log = event.target.checked; redraw(); });
document.getElementById("smooth").addEventListener("input", event => { state.smooth = Number(event.target.value); redraw(); });
document.querySelectorAll("[data-run]").forEach(input => input.addEventListener("change", () => {
  state.hidden[input.checked ? "delete" : "add"](Number(input.dataset.run)); redraw();
}));
const theme = document.querySelector(".theme");
theme.hidden = false;
theme.addEventListener("click", () => {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
});
redraw();
document.documentElement.dataset.ready = "yes";
})();
)js";

}  // namespace stretto::report
