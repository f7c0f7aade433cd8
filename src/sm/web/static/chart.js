// Draws the context of a session over time, with its thresholds and what happened, from what the server tells.
"use strict";

(() => {
  const place = document.getElementById("chart");
  if (!place || !window.uPlot) return;
  const REDRAW_MS = 5000;
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(name).trim();
  let plot = null;
  let last = 0;
  let due = 0;

  const short = (tokens) => (tokens >= 1e6 ? `${(tokens / 1e6).toFixed(1)}M` : tokens >= 1000 ? `${Math.round(tokens / 1000)}k` : String(tokens));

  function limits(found) {
    return [["warning", found.warning, "--care"], ["hand off", found.critical, "--bad"]].filter(([, tokens]) => tokens);
  }

  function drawn(found) {
    return (u) => {
      const { left, top, width, height } = u.bbox;
      const context = u.ctx;
      const scale = devicePixelRatio;
      context.save();
      context.font = `${11 * scale}px ${colour("--sans")}`;
      context.lineWidth = scale;
      context.textAlign = "left";
      context.textBaseline = "alphabetic";
      for (const [words, tokens, name] of limits(found)) {
        const y = u.valToPos(tokens, "y", true);
        if (y < top) continue;
        context.strokeStyle = context.fillStyle = colour(name);
        context.setLineDash([6 * scale, 4 * scale]);
        line(context, left, y, left + width, y);
        context.fillText(words, left + 4 * scale, y - 3 * scale);
      }
      context.setLineDash([2 * scale, 3 * scale]);
      context.strokeStyle = context.fillStyle = colour("--soft");
      let free = 0;
      for (const mark of found.marks) {
        const x = u.valToPos(mark.at, "x", true);
        if (x < left || x > left + width) continue;
        line(context, x, top, x, top + height);
        if (x < free) continue;
        const long = context.measureText(mark.words).width;
        const fits = x + long + 4 * scale < left + width;
        context.fillText(mark.words, fits ? x + 3 * scale : x - long - 3 * scale, top + 10 * scale);
        free = (fits ? x + long : x) + 8 * scale;
      }
      context.restore();
    };
  }

  function line(context, x, y, toX, toY) {
    context.beginPath();
    context.moveTo(x, y);
    context.lineTo(toX, toY);
    context.stroke();
  }

  function options(found) {
    const axis = { stroke: colour("--soft"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line") } };
    const long = found.at[found.at.length - 1] - found.at[0] > 86400;
    const shown = { hour: "2-digit", minute: "2-digit", hourCycle: "h23", ...(long && { day: "numeric", month: "short" }) };
    const time = (at) => new Date(at * 1000).toLocaleString([], shown);
    const top = Math.max(...found.tokens, found.critical || 0, 1000) * 1.08;
    return {
      width: place.clientWidth,
      height: 240,
      legend: { show: false },
      cursor: { y: false },
      scales: { y: { range: [0, top] } },
      axes: [{ ...axis, values: (_, times) => times.map(time) }, { ...axis, size: 52, values: (_, values) => values.map(short) }],
      series: [{}, { stroke: colour("--bar"), width: 2, fill: `${colour("--bar")}22`, points: { show: found.tokens.length < 60 } }],
      hooks: { draw: [drawn(found)] },
    };
  }

  async function draw() {
    due = 0;
    last = Date.now();
    const answer = await fetch(place.dataset.source, { cache: "no-store" }).catch(() => null);
    if (!answer?.ok) return;
    const found = await answer.json();
    plot?.destroy();
    plot = null;
    place.replaceChildren();
    if (found.at.length) plot = new window.uPlot(options(found), [found.at, found.tokens], place);
    else place.textContent = "No reading yet.";
    place.dataset.points = found.at.length;
    const marks = found.marks.map((mark) => mark.words).join(", ");
    if (marks) document.getElementById("chart-words").dataset.marks = marks;
  }

  document.body.addEventListener("touched", () => {
    if (!due) due = setTimeout(draw, Math.max(0, last + REDRAW_MS - Date.now()));
  });
  new ResizeObserver(() => plot && plot.width !== place.clientWidth && plot.setSize({ width: place.clientWidth, height: 240 })).observe(place);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  draw();
})();
