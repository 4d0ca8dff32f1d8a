"use strict";
(() => {
  const data = JSON.parse(document.getElementById("charts").textContent);
  const number = new Intl.NumberFormat("en");
  const NEAR = 22; // pixels around a mark that count as on it

  // Opens whatever is closed around a place, and goes there.
  function reveal(id) {
    const place = id && document.getElementById(id);
    if (!place) return;
    for (let at = place; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
    fill(place);
    const handle = place.querySelector("summary");
    if (handle) handle.focus({ preventScroll: true });
    place.scrollIntoView({ block: "start" });
  }

  // A text stands on the page once; where it left a second time it is shown while open.
  function fill(place) {
    const whole = place.dataset.whole && document.getElementById(place.dataset.whole);
    if (!whole) return;
    const shown = place.querySelector(".text");
    if (place.open && !shown) {
      place.querySelector(".whole").append(whole.querySelector(".text").cloneNode(true));
    } else if (!place.open && shown) shown.remove();
  }

  const named = () => decodeURIComponent(location.hash.slice(1));
  addEventListener("hashchange", () => reveal(named()));
  document.addEventListener("toggle", (event) => fill(event.target), true);
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[href^='#']");
    // The same link again changes no address, and must still lead there.
    if (link && link.getAttribute("href") === location.hash) reveal(named());
    const all = event.target.closest("button[data-all]");
    if (all) {
      const open = all.getAttribute("aria-pressed") !== "true";
      for (const one of all.closest(".inside").querySelectorAll(".original")) one.open = open;
      all.setAttribute("aria-pressed", String(open));
      all.textContent = open ? all.dataset.close : all.dataset.all;
    }
  });
  function go(anchors) {
    for (const anchor of anchors) document.getElementById(anchor).open = true;
    if (named() === anchors[0]) reveal(anchors[0]);
    else location.hash = anchors[0];
  }

  // What Plotly draws is coloured by the style sheet, so that light, dark and paper need no redraw.
  const colours = document.head.appendChild(document.createElement("style")).sheet;
  for (let c = 0; c < data.colours; c += 1) {
    colours.insertRule(`.plot .tracec${c} .js-line{stroke:var(--c${c})!important}`);
    colours.insertRule(`.plot .tracem${c} .point{fill:var(--c${c})!important}`);
  }

  // The first line stands above the others, and marks above all lines.
  function traces(chart) {
    const lines = [...chart.lines].reverse();
    const most = Math.max(0, ...lines.map((line) => line.marks.length));
    return [
      ...lines.map((line) => ({
        uid: `c${line.colour}`, type: "scatter", mode: "lines", name: line.title,
        x: line.steps, y: line.tokens, hoverinfo: "none",
        line: { width: line === chart.lines[0] ? 2.25 : 1.5, dash: line.dash, simplify: false },
      })),
      ...lines.map((line) => ({
        uid: `m${line.colour}`, type: "scatter", mode: "markers", name: line.title,
        x: line.marks.map((mark) => mark.step), y: line.marks.map((mark) => mark.tokens),
        hoverinfo: "none", cliponaxis: true,
        marker: { size: most > 16 ? 8 : 11, symbol: line.symbol, line: { width: 1 } },
      })),
    ];
  }

  function layout(chart, all) {
    const last = Math.max(1, ...chart.lines.map((line) => line.steps.at(-1) || 1));
    return {
      margin: { l: 58, r: 14, t: 14, b: 42 }, showlegend: false, hovermode: "x",
      dragmode: matchMedia("(pointer:coarse)").matches ? false : "zoom",
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: "system-ui, sans-serif", size: 12 },
      xaxis: {
        title: { text: "model call", standoff: 8 }, range: [1 - last * 0.015, last * 1.015 + 0.1],
        showgrid: false, zeroline: false, tickformat: "d", nticks: 9, showspikes: true,
        spikemode: "across", spikethickness: 1, spikedash: "solid", spikesnap: "data",
        ...(last < 9 ? { dtick: 1 } : {}),
      },
      yaxis: {
        range: [0, all ? chart.peak : chart.top], fixedrange: true, tickformat: ",d", nticks: 6,
        zeroline: true,
      },
      shapes: [{
        type: "line", xref: "paper", x0: 0, x1: 1, y0: chart.window, y1: chart.window,
        line: { width: 1, dash: "4px,3px" },
      }],
    };
  }

  // Marks in the order in which Plotly draws them, with what they open.
  function marks(box, chart) {
    return chart.lines.flatMap((line) => {
      const points = box.querySelectorAll(`.tracem${line.colour} .point`);
      return line.marks.map((mark, place) => ({ line, mark, point: points[place] }));
    }).filter((one) => one.point);
  }

  function nearest(box, chart, event) {
    let best = null, least = NEAR;
    for (const one of marks(box, chart)) {
      const at = one.point.getBoundingClientRect();
      const off = Math.hypot(
        at.x + at.width / 2 - event.clientX, at.y + at.height / 2 - event.clientY);
      if (off < least) [best, least] = [one, off];
    }
    return best;
  }

  function told(chart, call) {
    const sizes = chart.lines.map((line) => {
      const at = line.steps.indexOf(call);
      return `${line.title} ${at < 0 ? "–" : number.format(line.tokens[at])}`;
    });
    return `Call ${number.format(call)}: ${sizes.join(" · ")} tokens`;
  }

  function draw(box) {
    if (box.dataset.drawn) return;
    box.dataset.drawn = "yes";
    const chart = data.charts[box.dataset.chart];
    const says = box.parentElement.querySelector(".says");
    const silent = says.textContent;
    Plotly.newPlot(box, traces(chart), layout(chart, false), {
      displayModeBar: false, responsive: true, showTips: false, doubleClick: "reset",
    });
    const label = () => {
      for (const { line, mark, point } of marks(box, chart)) {
        point.setAttribute("tabindex", "0");
        point.setAttribute("role", "link");
        point.setAttribute("aria-label", `${line.title}: compaction before call ${mark.step}`);
        point.onkeydown = (event) => {
          if (event.key === "Enter" || event.key === " ") {
            event.preventDefault();
            go(mark.anchors);
          }
        };
      }
    };
    label();
    box.on("plotly_afterplot", label);
    box.on("plotly_hover", (hover) => {
      says.textContent = told(chart, hover.points[0].x);
    });
    box.on("plotly_unhover", () => { says.textContent = silent; });
    box.on("plotly_click", (click) => {
      const hit = nearest(box, chart, click.event);
      if (hit) go(hit.mark.anchors);
    });
    box.addEventListener("mousemove", (event) => {
      box.classList.toggle("onmark", Boolean(nearest(box, chart, event)));
    });
    const scale = box.parentElement.querySelector("button[data-scale]");
    if (scale) {
      scale.hidden = false;
      scale.addEventListener("click", () => {
        const all = scale.getAttribute("aria-pressed") !== "true";
        scale.setAttribute("aria-pressed", String(all));
        Plotly.relayout(box, { "yaxis.range": [0, all ? chart.peak : chart.top] });
      });
    }
  }

  const boxes = [...document.querySelectorAll(".plot")];
  const soon = new IntersectionObserver((seen) => {
    for (const one of seen) if (one.isIntersecting) draw(one.target);
  }, { rootMargin: "800px" });
  for (const box of boxes) soon.observe(box);

  // Paper: every chart at the width of a page, compactions open unless they are many, originals as they are.
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll(".few details.compaction:not([open])")];
    for (const one of opened) one.open = true;
    for (const box of boxes) {
      draw(box);
      Plotly.relayout(box, { width: 660, height: 300 });
    }
  });
  addEventListener("afterprint", () => {
    for (const one of opened) one.open = false;
    for (const box of boxes) Plotly.relayout(box, { width: null, height: null, autosize: true });
  });

  for (const button of document.querySelectorAll("button[data-all]")) button.hidden = false;
  if (location.hash) reveal(named());
})();
