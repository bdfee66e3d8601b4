"use strict";
// Draws the charts from the embedded data; switches theme and trial; saves charts as SVG.
(() => {
  const report = JSON.parse(document.getElementById("report-data").textContent);
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  const TWO_COLUMNS = 700; // px of a wide chart from which panels stand side by side
  const THREE_COLUMNS = 1000;
  const AXIS = 62; // px that a panel's vertical axis and padding take
  const GAP = 18; // px between panels
  const views = new Map();

  const blockOf = (element) => report.blocks[element.closest("[data-block]").dataset.block];

  // --- Theme -------------------------------------------------------------------------------

  const stored = () => { try { return localStorage.getItem("astraea-theme"); } catch { return null; } };
  const mode = () => root.dataset.theme || (system.matches ? "dark" : "light");
  if (stored()) root.dataset.theme = stored();
  document.getElementById("theme").addEventListener("click", () => {
    const next = mode() === "dark" ? "light" : "dark";
    root.dataset.theme = next;
    try { localStorage.setItem("astraea-theme", next); } catch { /* not kept: no harm */ }
    drawAll();
  });
  system.addEventListener("change", () => { if (!root.dataset.theme) drawAll(); });

  // --- Data --------------------------------------------------------------------------------

  // One row per point from columns, or from lines {t0, dt, y, ...keys} of the trial in view.
  function rows(packed, trial) {
    const out = [];
    if (packed.columns) {
      const names = Object.keys(packed.columns);
      const count = names.length ? packed.columns[names[0]].length : 0;
      for (let i = 0; i < count; i++) {
        const row = {};
        for (const name of names) row[name] = packed.columns[name][i];
        out.push(row);
      }
      return out;
    }
    for (const { t0, dt, y, trial: of, ...keys } of packed.lines) {
      if (of !== trial) continue;
      y.forEach((value, k) => out.push({
        ...keys, t: Math.round((t0 + k * dt) * 1e4) / 1e4, i: Math.round(t0 / dt) + k, y: value,
      }));
    }
    return out;
  }

  // --- Drawing -----------------------------------------------------------------------------

  // Three side by side where there is room; four look better as two by two.
  function panelColumns(panels, width) {
    if (width < TWO_COLUMNS) return 1;
    return Math.min(panels, width >= THREE_COLUMNS && panels !== 4 ? 3 : 2);
  }

  // A tooltip without the rows that have no value there (a flow that is not active).
  function tooltip(value, sanitize) {
    if (typeof value !== "object") return sanitize(value);
    const cells = Object.entries(value).filter(([, text]) => text !== "NaN" && text !== "null" && text !== "");
    return `<dl>${cells.map(([key, text]) => `<dt>${sanitize(key)}</dt><dd>${sanitize(text)}</dd>`).join("")}</dl>`;
  }

  function sized(chart, width) {
    const title = JSON.stringify(chart.choices[chart.choice] ?? "");
    const spec = JSON.parse(JSON.stringify(chart.spec).replaceAll('"@choice"', () => title));
    if (!chart.panels) {
      return { ...spec, width, height: chart.height, autosize: { type: "fit", contains: "padding" } };
    }
    const columns = panelColumns(chart.panels, width);
    const inner = Math.floor((width - AXIS - (columns - 1) * GAP) / columns);
    spec.columns = columns;
    Object.assign(spec.spec, { width: inner, height: chart.height });
    return spec;
  }

  async function draw(element) {
    const block = blockOf(element);
    const chart = block.charts[element.dataset.chart];
    const width = Math.floor(element.clientWidth);
    if (element.closest("details:not([open])")) return; // drawn when it is opened
    const theme = mode();
    const palette = report.colours[theme];
    const config = structuredClone(report.config[theme]);
    config.range = {};
    config.range.category = block.schemes.map((cc) => palette[report.index[cc] % palette.length]);
    config.range.ordinal = chart.flows[theme];
    const name = Math.max(...block.schemes.map((cc) => cc.length));
    if (!chart.panels) config.legend.columns = Math.max(1, Math.floor((width - AXIS) / (name * 7 + 40)));
    const spec = sized(chart, width);
    spec.datasets = {};
    for (const [name, packed] of Object.entries(chart.data)) {
      spec.datasets[name] = rows(packed, block.shown).filter((row) => !row.choice || row.choice === chart.choice);
    }
    const state = `${width} ${theme} ${block.shown} ${chart.choice}`;
    if (element.dataset.state === state) return;
    element.dataset.state = state;
    try {
      const { view } = await vegaEmbed(element, spec, {
        actions: false, renderer: "svg", config, tooltip: { disableDefaultStyle: false, formatTooltip: tooltip, offsetX: 14, offsetY: 14 },
      });
      views.get(element)?.finalize();
      views.set(element, view);
      element.style.minHeight = "";
    } catch (error) {
      element.classList.add("failed");
      element.textContent = `This chart could not be drawn: ${error.message}`;
      console.error(error);
    }
  }

  // One after the other, yielding in between, so that a long page stays usable while it is drawn.
  let turn = 0;
  async function drawAll() {
    const mine = ++turn;
    root.dataset.charts = "pending";
    for (const element of document.querySelectorAll("[data-chart]")) {
      await draw(element);
      await new Promise((resolve) => setTimeout(resolve));
      if (mine !== turn) return;
    }
    root.dataset.charts = "done";
  }

  // --- Controls ----------------------------------------------------------------------------

  for (const select of document.querySelectorAll("[data-trial]")) {
    select.addEventListener("change", () => {
      blockOf(select).shown = Number(select.value);
      drawAll();
    });
  }
  for (const select of document.querySelectorAll("[data-choice]")) {
    select.addEventListener("change", () => {
      blockOf(select).charts[select.dataset.choice].choice = select.value;
      drawAll();
    });
  }
  for (const details of document.querySelectorAll("details.point")) {
    details.addEventListener("toggle", () => { if (details.open) drawAll(); });
  }
  for (const button of document.querySelectorAll("[data-export]")) {
    button.addEventListener("click", async () => {
      const figure = button.closest("figure");
      const view = views.get(figure.querySelector("[data-chart]"));
      if (!view) return;
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([await view.toSVG()], { type: "image/svg+xml" }));
      link.download = `${figure.id}.svg`;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 10000);
    });
  }
  let wait;
  let last = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth === last) return;
    last = innerWidth;
    clearTimeout(wait);
    wait = setTimeout(drawAll, 150);
  });
  const links = new Map([...document.querySelectorAll(".links a")].map((a) => [a.hash.slice(1), a]));
  const seen = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      links.get(target.id)?.toggleAttribute("aria-current", isIntersecting);
    }
  }, { rootMargin: "-50% 0px -50% 0px" });
  for (const id of links.keys()) seen.observe(document.getElementById(id));

  drawAll();
})();
