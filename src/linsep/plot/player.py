"""HTML page with a player: one SVG, a few buttons, plain JavaScript, no external resources."""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from linsep.arrays import FloatArray
from linsep.plot import style

if TYPE_CHECKING:
    from linsep.plot.animation import Frame

WIDTH, HEIGHT = 640, 460

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" \
content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<title>The perceptron, update by update</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; color: #111; background: #fff; max-width: 44rem;
  margin: 1rem auto; padding: 0 1rem; }}
svg {{ width: 100%; height: auto; border: 1px solid #bbb; }}
.controls {{ display: flex; flex-wrap: wrap; gap: .5rem; align-items: center; margin: .6rem 0; }}
button {{ font: inherit; padding: .3rem .8rem; }}
input[type=range] {{ flex: 1 1 12rem; }}
:focus-visible {{ outline: 3px solid {focus}; outline-offset: 2px; }}
#state {{ min-height: 3em; }}
</style>
</head>
<body>
<h1>The perceptron, update by update</h1>
<svg viewBox="0 0 {width} {height}" role="img" aria-labelledby="title" aria-describedby="state">
<title id="title">Rows of two classes and the line of the perceptron</title>
<line id="before" stroke="{grey}" stroke-width="2" stroke-dasharray="7 5" visibility="hidden"/>
<line id="line" stroke="#000" stroke-width="3" visibility="hidden"/>
<g stroke="#fff" stroke-width="1">
{points}
</g>
<circle id="ring" r="13" fill="none" stroke="#000" stroke-width="2.5" visibility="hidden"/>
</svg>
<div class="controls" role="group" aria-label="Player">
<button type="button" id="first" aria-label="First frame">|&lt;</button>
<button type="button" id="back" aria-label="One update back">&lt;</button>
<button type="button" id="play">Play</button>
<button type="button" id="next" aria-label="One update forward">&gt;</button>
<button type="button" id="last" aria-label="Last frame">&gt;|</button>
<input type="range" id="slider" min="0" max="{last}" value="0" step="1" aria-label="Frame">
</div>
<p id="state" aria-live="polite"></p>
<p>{legend} Dashed: the line before the update. Ringed: the row that caused it.
Keys: space plays and pauses, left and right step, Home and End jump.</p>
<noscript><p>The player needs JavaScript; without it only the rows are shown.</p></noscript>
<script>
"use strict";
const frames = {frames};
const rows = {rows};
const wait = {wait};
const $ = id => document.getElementById(id);
let at = 0, timer = null;
function place(line, ends) {{
  line.setAttribute("visibility", ends ? "visible" : "hidden");
  if (ends) ["x1", "y1", "x2", "y2"].forEach((name, k) => line.setAttribute(name, ends[k]));
}}
function show(k) {{
  at = Math.max(0, Math.min(frames.length - 1, k));
  const f = frames[at], row = rows[f.row];
  place($("line"), f.line);
  place($("before"), f.before);
  $("ring").setAttribute("visibility", row ? "visible" : "hidden");
  if (row) {{ $("ring").setAttribute("cx", row[0]); $("ring").setAttribute("cy", row[1]); }}
  const left = f.wrong === 0 ? "all rows are on their side." : f.wrong + " of " + rows.length +
    " rows are not yet on their side.";
  $("state").textContent = f.row === null ? "Start: w = 0, b = 0; " + left :
    "Update " + f.number + ", row " + f.row + " (" + row[2] + "): w = (" + f.w[0] + ", " + f.w[1] +
    "), b = " + f.w[2] + "; " + left;
  $("slider").value = at;
  $("slider").setAttribute("aria-valuetext", "update " + f.number);
  $("first").disabled = $("back").disabled = at === 0;
  $("last").disabled = $("next").disabled = at === frames.length - 1;
  if (at === frames.length - 1) pause();
}}
function pause() {{
  clearInterval(timer);
  timer = null;
  $("play").textContent = "Play";
}}
function play() {{
  if (at === frames.length - 1) show(0);
  if (frames.length < 2) return;
  timer = setInterval(() => show(at + 1), wait);
  $("play").textContent = "Pause";
}}
const toggle = () => timer === null ? play() : pause();
const step = k => {{ pause(); show(k); }};
$("play").onclick = toggle;
$("first").onclick = () => step(0);
$("back").onclick = () => step(at - 1);
$("next").onclick = () => step(at + 1);
$("last").onclick = () => step(frames.length - 1);
$("slider").oninput = event => step(Number(event.target.value));
document.addEventListener("keydown", event => {{
  if (event.altKey || event.ctrlKey || event.metaKey) return;
  const keys = {{ ArrowLeft: () => step(at - 1), ArrowRight: () => step(at + 1), Home: () => step(0),
    End: () => step(frames.length - 1), " ": toggle }};
  const act = keys[event.key];
  if (!act || (event.target.tagName === "BUTTON" && event.key === " ")) return;
  event.preventDefault();
  act();
}});
show(0);
</script>
</body>
</html>
"""


def page(
    points: FloatArray,
    positive: Any,
    names: tuple[str, str],
    frames: Sequence[Frame],
    seconds: float,
) -> str:
    """Return the page as text."""
    box = style.frame(points)
    scale = min(WIDTH / (box[1] - box[0]), HEIGHT / (box[3] - box[2]))
    middle = ((box[0] + box[1]) / 2, (box[2] + box[3]) / 2)
    half = (WIDTH / 2 / scale, HEIGHT / 2 / scale)
    box = (middle[0] - half[0], middle[0] + half[0], middle[1] - half[1], middle[1] + half[1])

    def pixel(x: FloatArray) -> list[float]:
        return [round((x[0] - box[0]) * scale, 1), round((box[3] - x[1]) * scale, 1)]

    def ends(v: FloatArray) -> list[float] | None:
        found = style.segment(v[:2], float(v[2]), box)
        return None if found is None else [*pixel(found[0]), *pixel(found[1])]

    states = [
        {
            "number": frame.number,
            "row": frame.row,
            "line": ends(frame.v),
            "before": ends(frame.before),
            "w": [f"{value:.4g}" for value in frame.v],
            "wrong": frame.wrong,
        }
        for frame in frames
    ]
    labels = [f"class {names[int(p)]}" for p in positive]
    rows = [[*pixel(x), label] for x, label in zip(points, labels, strict=True)]
    marks = [_mark(pixel(x), bool(p)) for x, p in zip(points, positive, strict=True)]
    legend = f"Blue circles: class {names[0]}. Orange triangles: class {names[1]}."
    return _PAGE.format(
        width=WIDTH,
        height=HEIGHT,
        grey=style.GREY,
        focus=style.BLUE,
        last=len(states) - 1,
        points="\n".join(marks),
        legend=html.escape(legend),
        frames=_script(states),
        rows=_script(rows),
        wait=round(1000 * seconds),
    )


def _mark(at: list[float], positive: bool) -> str:
    x, y = at
    colour = style.CLASSES[int(positive)][0]
    if positive:
        return f'<path d="M{x} {y - 8:.1f}l7 13h-14z" fill="{colour}"/>'
    return f'<circle cx="{x}" cy="{y}" r="6" fill="{colour}"/>'


def _script(value: Any) -> str:
    """Return JSON that cannot close the script element that contains it."""
    return json.dumps(value, separators=(",", ":")).replace("<", "\\u003c")
