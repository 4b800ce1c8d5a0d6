// All that is known of one test, made when it is opened.
function countersTable(test) {
  const rows = tests.counters
    .map((counter, number) => ({ counter, number, values: column(number) }))
    .filter(({ values }) => values.before[test] !== null);
  if (!rows.length) return null;
  const head = ["counter", "before", "after", "growth", tests.past ? "growth, run by run" : ""]
    .filter(Boolean)
    .map((text, i) => element("th", { scope: "col", text, class: i && i < 4 ? "number" : null }));
  const body = rows.map(({ counter, number, values }) => {
    const unit = counter[2], growth = values.growth[test];
    const cells = [
      element("th", { scope: "row", text: counterName(counter) }),
      element("td", { class: "number", text: formatValue(values.before[test], unit) }),
      element("td", { class: "number", text: formatValue(values.after[test], unit) }),
      element("td", {
        class: `number ${growth > 0 ? "grown" : ""}`,
        text: growth ? formatValue(growth, unit, true) : "0",
      }),
    ];
    if (tests.past) cells.push(element("td", { class: "past" }, sparkOf(test, number)));
    return element("tr", {}, ...cells);
  });
  const table = element("table", { class: "counters" },
    element("caption", { text: "Every counter over the test's first run" }),
    element("thead", {}, element("tr", {}, ...head)),
    element("tbody", {}, ...body));
  return element("div", { class: "scrolled", tabindex: 0, role: "group", "aria-label": "counters" }, table);
}

function framesOf(series) {
  const parts = [series.strip && stripPlot(series),
    series.histogram && histogramPlot(series),
    series.percentiles && percentilePlot(series)].filter(Boolean);
  if (!parts.length) return null;
  const [strip, ...others] = parts;
  return element("section", { class: "frames" },
    element("h3", { text: series.series === "frames" ? "frames" : `frames: ${visible(series.series)}` }),
    ...(series.strip ? [strip, element("div", { class: "pair" }, ...others)]
      : [element("div", { class: "pair" }, ...parts)]));
}

// What the plots add to a test's text; a card at the top keeps the counters folded.
function plotsOf(test, folded) {
  const found = (detailsOf(test).frames || []).map(framesOf).filter(Boolean);
  const table = countersTable(test);
  if (!table) return found;
  if (!folded) return [...found, table];
  const summary = element("summary", { text: "Every counter over this test" });
  return [...found, element("details", {}, summary, table)];
}

function linkTo(test) {
  return element("a", { href: hashOf(test), class: "permalink", text: "link to this test" });
}

function detailOf(test) {
  const details = detailsOf(test);
  const { path, name } = nameOf(test);
  const holder = element("div", { class: "detail" });
  if (details.html) {
    // Made by the page's template, which escapes; scripts in it would not run at all.
    const template = document.createElement("template");
    template.innerHTML = details.html;
    holder.append(template.content);
  }
  holder.append(...plotsOf(test, false));
  const facts = [`took ${formatNs(tests.ms[test] * 1e6)}`];
  if (tests.worker.length && tests.worker[test]) facts.push(`on ${visible(tests.worker[test])}`);
  if (name.length > 240) facts.push(`full id: ${path}::${name}`);
  holder.append(element("p", { class: "muted small" }, `${facts.join(" · ")} · `, linkTo(test)));
  return holder;
}
