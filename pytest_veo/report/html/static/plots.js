// Every plot is drawn by uPlot when it comes into view, in the colours of the page.
const drawn = new Set();

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

const seen = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    if (entry.isIntersecting) drawNow(entry.target);
  }
}, { rootMargin: "200px" });

function drawNow(target) {
  seen.unobserve(target);
  target.draw?.();
  target.draw = null;
}

// Fills `target` once somebody can see it.
function lazily(target, draw) {
  target.draw = draw;
  seen.observe(target);
  return target;
}

// A figure that is drawn once somebody can see it; `make` gives uPlot's options and data.
function plot(label, height, make, kind = "") {
  const figure = element("div", { class: `plot ${kind}`, role: "img", "aria-label": label });
  figure.style.minHeight = `${height}px`;
  return lazily(figure, () => {
    const { options, data } = make();
    const chart = new uPlot(
      { ...options, width: figure.clientWidth || 300, height }, data, figure,
    );
    figure.chart = chart;
    drawn.add(chart);
    sized.observe(figure);
  });
}

const sized = new ResizeObserver((entries) => {
  for (const { target } of entries) {
    const width = target.clientWidth;
    if (!target.isConnected) {
      sized.unobserve(target);
      drawn.delete(target.chart);
      target.chart.destroy();
    } else if (width && width !== target.chart.width) {
      target.chart.setSize({ width, height: target.chart.height });
    }
  }
});

// Paper shows what nobody has scrolled to.
addEventListener("beforeprint", () => {
  for (const waiting of ["[data-plots]", ".plot"]) document.querySelectorAll(waiting).forEach(drawNow);
});

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  for (const chart of drawn) chart.redraw(false, false);
});

// Ticks as text: all of a byte axis in one unit, with the digits that tell them apart.
function each(format) {
  return (splits) => splits.map((value) => (value === null ? "" : format(value)));
}

function sizes(splits) {
  const most = Math.max(...splits.map(Math.abs));
  const [unit, size] = SIZES.find(([, step]) => most >= step) || ["B", 1];
  const gap = splits.length > 1 ? Math.abs(splits[1] - splits[0]) / size : 1;
  const digits = Math.min(6, Math.max(0, Math.ceil(-Math.log10(gap) - 0.001)));
  return splits.map((value) => `${Number((value / size).toFixed(digits))} ${unit}`);
}

function axis(format, more = {}) {
  return {
    stroke: () => colour("muted"),
    grid: { stroke: () => colour("line"), width: 1 },
    ticks: { stroke: () => colour("line"), width: 1 },
    font: "11px system-ui, sans-serif",
    filter: (_, splits) => splits,
    values: (_, splits) => (splits.length ? format(splits) : []),
    ...more,
  };
}

// Splits of round binary sizes: a tick at 1.4 MiB tells less than one at 1.5.
function sizeSplits(_, __, low, high) {
  const span = high - low || 1;
  let step = 2 ** Math.ceil(Math.log2(span / 6));
  step = Math.max(step, 1);
  const splits = [];
  for (let at = Math.ceil(low / step) * step; at <= high; at += step) splits.push(at);
  return splits;
}

function plainLegend() {
  return { legend: { show: false }, cursor: { show: false } };
}

// ------------------------------------------------------------------ sparklines

function spark(values, label) {
  const make = () => ({
    data: [values.map((_, i) => i), values],
    options: {
      ...plainLegend(),
      pxAlign: false,
      padding: [3, 4, 3, 3],
      axes: [{ show: false }, { show: false }],
      scales: {
        x: { time: false },
        y: { range: (_, low, high) => [Math.min(low, 0), Math.max(high, low + 1, 1)] },
      },
      series: [{}, {
        stroke: () => colour("accent"),
        fill: () => colour("accent-soft"),
        width: 1.5,
        spanGaps: true,
        points: {
          show: true, size: 5, fill: () => colour("accent"),
          filter: (chart) => [chart.data[1].length - 1],
        },
      }],
    },
  });
  return plot(label, 28, make, "spark");
}

// Growth in earlier runs, and in this one; with none before, of the confirming runs.
function sparkOf(test, counter) {
  const now = column(counter).growth[test];
  const unit = tests.counters[counter][2];
  const values = [...pastGrowth(test, counter), now];
  const known = values.filter((value) => value !== null && value !== undefined);
  if (known.length < 2) return element("span", { class: "muted", text: "first run" });
  const label = `growth in ${known.length} runs: ` +
    `from ${formatValue(Math.min(...known), unit, true)} ` +
    `to ${formatValue(Math.max(...known), unit, true)}, ` +
    `now ${formatValue(now, unit, true)}`;
  if (known.every((value) => value === known[0])) {
    const text = `${formatValue(now, unit, true)} in all ${known.length}`;
    return element("span", { class: "muted", text });
  }
  return spark(values, label);
}

// ---------------------------------------------------------------- frame times

// Budget lines across a plot; `place` gives each limit's pixel along `way`.
function limitLines(limits, way) {
  return (chart) => {
    const { ctx, bbox } = chart;
    ctx.save();
    ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
    ctx.lineWidth = devicePixelRatio;
    limits.forEach(([rule, limit, , outcome], number) => {
      const at = chart.valToPos(limit, way, true);
      const inside = way === "y"
        ? at >= bbox.top && at <= bbox.top + bbox.height
        : at >= bbox.left && at <= bbox.left + bbox.width;
      if (!inside) return;
      ctx.strokeStyle = ctx.fillStyle = colour(outcome === "fail" ? "bad" : "muted");
      ctx.setLineDash([6 * devicePixelRatio, 4 * devicePixelRatio]);
      ctx.beginPath();
      const text = `${rule} ≤ ${limit} ms`;
      const gap = 4 * devicePixelRatio;
      if (way === "y") {
        ctx.moveTo(bbox.left, at);
        ctx.lineTo(bbox.left + bbox.width, at);
        // By turns above and below, for limits are often close to each other.
        const isAbove = at - bbox.top > 3 * gap && outcome === "fail";
        ctx.textAlign = isAbove ? "right" : "left";
        ctx.textBaseline = isAbove ? "bottom" : "top";
        const left = isAbove ? bbox.left + bbox.width - gap : bbox.left + gap;
        legible(ctx, text, left, isAbove ? at - gap / 2 : at + gap / 2);
      } else {
        ctx.moveTo(at, bbox.top);
        ctx.lineTo(at, bbox.top + bbox.height);
        const width = ctx.measureText(text).width;
        const room = bbox.left + bbox.width - at > width + 2 * gap;
        ctx.textAlign = room ? "left" : "right";
        const line = (number + 1) * 14 * devicePixelRatio;
        legible(ctx, text, at + (room ? gap : -gap), bbox.top + line);
      }
      ctx.stroke();
    });
    ctx.restore();
  };
}

// Text over lines, with a rim in the colour of the page.
function legible(ctx, text, x, y) {
  ctx.save();
  ctx.setLineDash([]);
  ctx.lineWidth = 4 * devicePixelRatio;
  ctx.lineJoin = "round";
  ctx.strokeStyle = colour("back");
  ctx.strokeText(text, x, y);
  ctx.restore();
  ctx.fillText(text, x, y);
}

function ms(value) {
  return `${Number(value.toPrecision(3))} ms`;
}

function stripPlot(series) {
  const [perPoint, longest, shortest] = series.strip;
  const x = longest.map((_, i) => i * perPoint);
  const top = longest.map((us) => us / 1000);
  const lines = series.limits.filter(([, limit]) => limit > 0);
  const highest = Math.max(...top, ...lines.map(([, limit]) => limit));
  const warm = series.warmup;
  const shade = (chart) => {
    if (!warm) return;
    const { ctx, bbox } = chart;
    const end = Math.min(chart.valToPos(warm, "x", true), bbox.left + bbox.width);
    ctx.save();
    ctx.fillStyle = colour("band");
    ctx.fillRect(bbox.left, bbox.top, end - bbox.left, bbox.height);
    ctx.restore();
  };
  const make = () => ({
    data: shortest.length ? [x, top, shortest.map((us) => us / 1000)] : [x, top],
    options: {
      ...plainLegend(),
      scales: { x: { time: false }, y: { range: [0, highest * 1.12 || 1] } },
      axes: [
        axis(each((value) => `#${value}`), { size: 30 }),
        axis(each(ms), { size: 62 }),
      ],
      series: [{}, {
        stroke: () => colour("accent"), width: 1, points: { show: false },
      }, {
        stroke: () => colour("muted"), width: 1, points: { show: false },
      }].slice(0, shortest.length ? 3 : 2),
      hooks: { drawClear: [shade], draw: [limitLines(lines, "y")] },
    },
  });
  const many = perPoint > 1 ? `, the longest and shortest of every ${perPoint}` : "";
  const warmed = warm ? `; the first ${warm} are warm-up, shaded and not judged` : "";
  const label = `frame times of ${visible(series.series)} in order${many}${warmed}`;
  return captioned(label, plot(label, 170, make));
}

function histogramPlot(series) {
  const [edges, counts] = series.histogram;
  if (counts.length < 2) return null;
  const x = edges.map((us) => us / 1000);
  const ratio = x[1] / x[0], even = Math.abs((x[2] - x[1]) / (x[1] - x[0]) - 1) < 0.02;
  // A limit far away would squeeze all bars into one.
  const lines = series.limits.filter(([, limit]) => limit > x[0] / 2 && limit < x.at(-1) * 2);
  const ends = [Math.min(x[0], ...lines.map((l) => l[1])),
    Math.max(x.at(-1), ...lines.map((l) => l[1]))];
  const wide = (ends[1] - ends[0]) * 0.03 || x[0] * 0.05;
  const log = !even && x[0] > 0 && ratio > 1;
  const range = log ? [ends[0] / 1.05, ends[1] * 1.05]
    : [Math.max(0, ends[0] - wide), ends[1] + wide];
  const bars = (chart) => {
    const { ctx } = chart;
    ctx.save();
    ctx.fillStyle = colour("accent");
    counts.forEach((count, i) => {
      if (!count) return;
      const left = chart.valToPos(x[i], "x", true), right = chart.valToPos(x[i + 1], "x", true);
      const top = chart.valToPos(count, "y", true), base = chart.valToPos(0, "y", true);
      const height = Math.max(base - top, devicePixelRatio);
      ctx.fillRect(left, base - height, Math.max(right - left - 1, 1), height);
    });
    ctx.restore();
  };
  const make = () => ({
    data: [x.slice(0, -1), counts],
    options: {
      ...plainLegend(),
      scales: {
        x: { time: false, range: () => range, distr: log ? 3 : 1 },
        // A single late frame must be seen beside thousands of good ones.
        y: { distr: 4, asinh: 2, range: [0, Math.max(...counts) * 1.6] },
      },
      axes: [
        axis(each(ms), {
          size: 30,
          ...(log ? { splits: () => logSplits(...range) } : {}),
        }),
        axis(each((value) => formatCount(value)), {
          size: 50, splits: () => tens(Math.max(...counts)),
        }),
      ],
      series: [{}, { paths: () => null, points: { show: false } }],
      hooks: { draw: [bars, limitLines(lines, "x")] },
    },
  });
  const label = `how many frames took how long${log ? " (logarithmic)" : ""}`;
  return captioned(label, plot(label, 170, make));
}

function tens(most) {
  const found = most < 100 ? [0, 1] : [0];
  for (let at = 10; at <= most * 1.6; at *= 10) found.push(at);
  return found;
}

function logSplits(low, high) {
  const found = [];
  const steps = high / low < 20 ? [1, 1.5, 2, 3, 5, 7] : [1, 2, 5];
  for (let at = 10 ** Math.floor(Math.log10(low)); at <= high; at *= 10) {
    for (const step of steps) {
      if (at * step >= low && at * step <= high) found.push(at * step);
    }
  }
  if (found.length >= 2) return found;
  return [0, 1, 2, 3].map((i) => low * (high / low) ** (i / 3));
}

// Shares are drawn by their nines, so that the slow tail has as much room as the rest.
function nines(share) {
  return -Math.log10(Math.max(1 - share, 1e-5));
}

function percent(nine) {
  return `p${Number((100 * (1 - 10 ** -nine)).toFixed(3))}`;
}

function percentilePlot(series) {
  const points = series.percentiles;
  if (points.length < 2) return null;
  const last = points.at(-2) ? nines(points.at(-2)[0]) + 0.6 : 1;
  const at = (share) => (share === 1 ? last : nines(share));
  const ticks = [0.5, 0.9, 0.99, 0.999, 0.9999].filter((share) => nines(share) < last);
  const highest = Math.max(...points.map((p) => p[1] / 1000), ...series.limits.map((l) => l[1]));
  const marks = (chart) => {
    const { ctx } = chart;
    ctx.save();
    ctx.lineWidth = 2 * devicePixelRatio;
    for (const [, limit, share, outcome] of series.limits) {
      const x = chart.valToPos(Math.min(at(share), last), "x", true);
      const y = chart.valToPos(limit, "y", true);
      const half = 9 * devicePixelRatio;
      ctx.strokeStyle = colour(outcome === "fail" ? "bad" : "muted");
      ctx.beginPath();
      ctx.moveTo(x - half, y);
      ctx.lineTo(x + half, y);
      ctx.stroke();
    }
    ctx.restore();
  };
  const make = () => ({
    data: [points.map(([share]) => at(share)), points.map(([, us]) => us / 1000)],
    options: {
      ...plainLegend(),
      scales: {
        x: { time: false, range: [0, last + 0.1] },
        y: { range: [0, highest * 1.12] },
      },
      axes: [
        axis(each((value) => (value === last ? "max" : percent(value))), {
          size: 30, splits: () => [...ticks.map(nines), last],
        }),
        axis(each(ms), { size: 62 }),
      ],
      series: [{}, {
        stroke: () => colour("accent"), width: 2,
        points: { show: true, size: 5, fill: () => colour("accent") },
      }],
      hooks: { draw: [marks] },
    },
  });
  const said = points.filter(([share]) => [0.5, 0.95, 0.99, 1].includes(share))
    .map(([share, us]) => `${share === 1 ? "longest" : `p${share * 100}`} ${ms(us / 1000)}`);
  const label = `percentiles of frame time: ${said.join(", ")}` +
    (series.limits.length ? "; limits are marked" : "");
  return captioned(label, plot(label, 170, make));
}

function captioned(text, figure) {
  const caption = element("figcaption", { text });
  return element("figure", {}, figure, caption);
}
