"use strict";
(() => {
  const slider = document.getElementById("threshold");
  if (!slider) return;
  const data = JSON.parse(document.getElementById("stops").textContent);
  const show = (id, text) => { document.getElementById(id).textContent = text; };
  const count = v => v.toLocaleString("en-US", { maximumFractionDigits: 1 });
  const percent = share => {
    if (!Number.isFinite(share)) return "–";
    const v = 100 * share;
    if (v === 0 || v === 100) return v + "\u00a0%";
    if (v >= 0.1 && v <= 99.9) return v.toFixed(1) + "\u00a0%";
    return (v < 50 ? Number(v.toPrecision(2)) : v.toFixed(2)) + "\u00a0%";
  };
  const move = (id, x, y) => {
    const dot = document.getElementById(id);
    if (!dot || !Number.isFinite(x) || !Number.isFinite(y)) return;
    const [x0, y0, x1, y1] = dot.dataset.frame.split(" ").map(Number);
    dot.setAttribute("cx", x0 + x * (x1 - x0));
    dot.setAttribute("cy", y0 + y * (y1 - y0));
  };
  const update = () => {
    const k = Number(slider.value), tp = data.tp[k], fp = data.fp[k];
    const fn = data.positives - tp, tn = data.negatives - fp, all = data.positives + data.negatives;
    const precision = tp / (tp + fp), recall = tp / data.positives, alarms = fp / data.negatives;
    show("tp", count(tp)); show("fp", count(fp)); show("fn", count(fn)); show("tn", count(tn));
    show("error", percent((fp + fn) / all)); show("precision", percent(precision)); show("recall", percent(recall));
    show("alarms", percent(alarms)); show("f1", percent(2 * tp / (2 * tp + fp + fn)));
    show("at", String(data.t[k]));
    slider.setAttribute("aria-valuetext", "threshold " + data.t[k]);
    move("roc-dot", alarms, recall); move("pr-dot", recall, precision);
  };
  slider.addEventListener("input", update);
  document.getElementById("reset").addEventListener("click", () => {
    slider.value = slider.dataset.start; update();
  });
  document.getElementById("controls").hidden = false;
  slider.value = slider.dataset.start;
  update();
})();
