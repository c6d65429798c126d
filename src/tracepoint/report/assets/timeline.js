/* The timeline: one view of time for all lanes, drawn from cells at the zoom that a pixel needs, and from
   single slices where the page has them. */
const ROW = 20, GAP = 2, WHOLE = 65535, NOTHING = 65535;
const BANDS = ["running", "runnable", "uninterruptible", "asleep"];

/** One lane: its cells, and its slices where the page has them. */
class Lane {
  constructor(facts, group) {
    this.name = facts.name;
    this.group = group;
    this.counts = prefix(Report.column(facts.counts), 1);
    if (facts.bands) this.bands = facts.bands.map((place) => prefix(Report.column(place), WHOLE));
    else {
      this.totals = prefix(Report.column(facts.totals), WHOLE);
      this.keys = facts.keys.map(Report.column);
      this.tops = facts.tops.map(Report.column);
    }
    this.starts = Report.column(facts.starts);
    this.stops = Report.column(facts.lengths);
    this.words = Report.column(facts.words);
    for (let i = 0, last = 0; i < this.starts.length; i++) {
      this.starts[i] += last;
      last = this.stops[i] += this.starts[i];
    }
  }

  /** The sum of a column of prefixes over a part of the time, in ns. */
  sum(column, from, to) {
    const { width, n } = this.group;
    const at = (time) => {
      const cell = Math.min(Math.max(time / width, 0), n), whole = Math.min(Math.floor(cell), n - 1);
      return column[whole] + (column[whole + 1] - column[whole]) * (cell - whole);
    };
    return (at(to) - at(from)) * width;
  }

  /** The first slice that ends after a time. */
  first(time) {
    let low = 0, high = this.stops.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.stops[middle] > time) high = middle;
      else low = middle + 1;
    }
    return low;
  }
}

function prefix(numbers, whole) {
  const found = new Float64Array(numbers.length + 1);
  for (let i = 0; i < numbers.length; i++) found[i + 1] = found[i] + numbers[i] / whole;
  return found;
}

Report.drawTimeline = () => {
  const { facts, el } = Report;
  const { span, losses, groups: given } = facts.timeline;
  const place = document.querySelector(".timeline");
  if (!given.length || !span) {
    place.replaceChildren(el("p", { class: "note" }, "There is nothing to draw: no rows with a time and a length."));
    return;
  }
  const view = { from: 0, to: span };
  const smallest = Math.min(200, span);
  const groups = given.map((group) => {
    const own = { ...group };
    own.lanes = group.lanes.map((lane) => new Lane(lane, own));
    return own;
  });
  const range = el("span", { class: "range" });
  const reading = el("p", { class: "reading", "aria-live": "polite" }, "Point at a lane, or choose one with the arrow keys, to read it.");
  const overview = el("canvas", { "aria-hidden": "true" });
  const ruler = el("canvas", { "aria-hidden": "true" });
  const button = (label, text, act) => el("button", { type: "button", "aria-label": label, onclick: act }, text);
  const middle = () => (view.from + view.to) / 2;
  place.replaceChildren(
    el("div", { class: "tools", role: "toolbar", "aria-label": "Zoom of the timeline" },
      button("Zoom in", "+", () => zoom(0.5, middle())), button("Zoom out", "\u2212", () => zoom(2, middle())),
      button("Earlier", "\u2190", () => pan(-0.5)), button("Later", "\u2192", () => pan(0.5)),
      button("Show all", "All", () => look(0, span)), range,
      el("span", { class: "keys" }, "drag: move · Ctrl+wheel, double click: zoom · keys: + \u2212 \u2190 \u2192 \u2191 \u2193 0")),
    el("div", { class: "ruler" },
      el("div", { class: "ruler-row" }, el("span", {}, "whole recording"), overview),
      el("div", { class: "ruler-row" }, el("span", {}, ""), ruler)),
    ...groups.map(groupElement), reading);

  function groupElement(group) {
    group.canvas = el("canvas", {
      tabindex: 0, role: "img",
      "aria-label": `Timeline of ${group.title}, ${group.lanes.length} lanes. Arrow keys choose a lane and move in time, plus and minus zoom, 0 shows all.`,
    });
    group.names = el("ol", { class: "names" }, ...group.lanes.map((lane) => el("li", { title: lane.name }, lane.name)));
    group.at = -1;
    const more = [];
    if (group.more) more.push(`${Report.count(group.more)} more not drawn`);
    if (group.hidden) more.push(`${Report.count(group.hidden)} slices overlap others and are not drawn`);
    const about = el("small", {}, [group.lanes.length === 1 ? "1 lane" : `${group.lanes.length} lanes`, ...more].join(", "));
    connect(group);
    return el("details", { open: "" }, el("summary", {}, group.title, about), el("div", { class: "tracks" }, group.names, group.canvas), legend(group));
  }

  function legend(group) {
    const entry = (mark, text) => el("li", {}, ...(mark ? [mark] : []), text);
    const entries = group.bands.length ? [...BANDS, "unknown"].map((name) => [name, name]) : [["other", "all others"], ["unknown", "idle, or not known"]];
    if (losses.length) entries.push(["lost-mark", "events lost"]);
    group.marks = group.legend.map(([word, text]) => [el("i"), word, text]);
    group.hues = new Map(group.legend.map(([word], at) => [Report.plain(word), 205 + at * 360 / group.legend.length]));
    return el("ul", { class: "legend" }, ...(group.bands.length ? [] : [entry(null, "what filled most of the time:")]),
      ...group.marks.map(([mark, , text]) => entry(mark, text)),
      ...entries.map(([name, text]) => entry(el("i", { class: name }), text)));
  }

  // The view.

  function look(from, to) {
    const length = Math.min(Math.max(to - from, smallest), span);
    view.from = Math.min(Math.max(from + (to - from - length) / 2, 0), span - length);
    view.to = view.from + length;
    Report.redraw();
  }
  const zoom = (by, around) => look(around + (view.from - around) * by, around + (view.to - around) * by);
  const pan = (by) => look(view.from + (view.to - view.from) * by, view.to + (view.to - view.from) * by);
  /** Show a time with as much again at both sides. */
  Report.look = (from, to) => {
    look(from - (to - from), to + (to - from));
    const isCalm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    document.getElementById("timeline").scrollIntoView({ behavior: isCalm ? "auto" : "smooth" });
  };
  Report.view = view;

  // Mouse, touch and keys.

  function connect(group) {
    const { canvas } = group;
    const fingers = new Map();
    let pinch = 0;
    const timeAt = (x) => {
      const { left, width } = canvas.getBoundingClientRect();
      return view.from + (x - left) / width * (view.to - view.from);
    };
    canvas.addEventListener("pointerdown", (event) => {
      fingers.set(event.pointerId, event.clientX);
      canvas.setPointerCapture(event.pointerId);
      pinch = 0;
    });
    canvas.addEventListener("pointermove", (event) => {
      const before = fingers.get(event.pointerId);
      if (before === undefined) { read(group, event); return; }
      fingers.set(event.pointerId, event.clientX);
      Report.tell("");
      if (fingers.size === 2) {
        const [a, b] = fingers.values();
        const apart = Math.max(Math.abs(a - b), 8);
        if (pinch) zoom(pinch / apart, timeAt((a + b) / 2));
        pinch = apart;
      } else {
        const length = view.to - view.from;
        const by = (before - event.clientX) / canvas.clientWidth * length;
        look(view.from + by, view.to + by);
      }
    });
    for (const end of ["pointerup", "pointercancel"]) {
      canvas.addEventListener(end, (event) => { fingers.delete(event.pointerId); pinch = 0; if (end === "pointerup") read(group, event); });
    }
    canvas.addEventListener("pointerleave", () => Report.tell(""));
    canvas.addEventListener("dblclick", (event) => zoom(0.25, timeAt(event.clientX)));
    canvas.addEventListener("wheel", (event) => {
      if (event.ctrlKey || event.metaKey) zoom(1.002 ** event.deltaY, timeAt(event.clientX));
      else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) pan((event.deltaX || event.deltaY) / canvas.clientWidth);
      else return;
      event.preventDefault();
    }, { passive: false });
    canvas.addEventListener("keydown", (event) => {
      const act = {
        ArrowLeft: () => pan(-0.2), ArrowRight: () => pan(0.2), a: () => pan(-0.2), d: () => pan(0.2),
        "+": () => zoom(0.5, middle()), "=": () => zoom(0.5, middle()), w: () => zoom(0.5, middle()),
        "-": () => zoom(2, middle()), s: () => zoom(2, middle()), 0: () => look(0, span), Home: () => look(0, span),
        ArrowDown: () => choose(group, 1), ArrowUp: () => choose(group, -1),
      }[event.key];
      if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      act();
      if (group.at >= 0) reading.textContent = describe(group, group.lanes[group.at], middle());
    });
  }

  function choose(group, by) {
    group.at = Math.min(Math.max(group.at + by, 0), group.lanes.length - 1);
    [...group.names.children].forEach((item, at) => item.classList.toggle("at", at === group.at));
    Report.redraw();
  }

  function read(group, event) {
    const { left, top, width } = group.canvas.getBoundingClientRect();
    const lane = group.lanes[Math.floor((event.clientY - top) / ROW)];
    const time = view.from + (event.clientX - left) / width * (view.to - view.from);
    if (!lane || time < 0 || time > span) { Report.tell(""); return; }
    const text = describe(group, lane, time);
    reading.textContent = text.replaceAll("\n", " · ");
    Report.tell(text, event.clientX, event.clientY);
  }

  /** Say what a lane does at a time: its slice, or what the cell of that time is full of. */
  function describe(group, lane, time) {
    const length = view.to - view.from;
    const lines = [lane.name];
    const slice = hasSlices(group) ? lane.first(time) : -1;
    if (slice >= 0 && lane.starts[slice] <= time) {
      const ns = lane.stops[slice] - lane.starts[slice];
      lines.push(`${group.words[lane.words[slice]]} for ${Report.time(ns)}`, `from ${Report.clock(lane.starts[slice], Math.min(length, 1e4))}`);
    } else if (slice >= 0) lines.push(`nothing known at ${Report.clock(time, length)}`);
    else lines.push(...summed(group, lane, time, length));
    for (const [cpu, start, stop, n] of losses) {
      if (start <= time && time <= stop && (group.key !== "sched" || lane.name === `CPU ${cpu}`)) {
        lines.push(`CPU ${cpu} lost ${n === facts.timeline.unknown ? "some" : Report.count(n)} events here`);
      }
    }
    return lines.join("\n");
  }

  function summed(group, lane, time, length) {
    const level = levelFor(group, length / group.canvas.clientWidth);
    const width = group.width * 2 ** level;
    const cell = Math.floor(time / width), from = cell * width, to = Math.min(from + width, span);
    const share = (column) => Report.share(lane.sum(column, from, to) / (to - from || 1));
    const n = Math.round(lane.sum(lane.counts, from, to) / group.width);
    const lines = [`${Report.time(to - from)} from ${Report.clock(from, width)}:`];
    if (lane.bands) {
      lane.bands.forEach((band, at) => { if (lane.sum(band, from, to) > 0) lines.push(`${BANDS[at]} ${share(band)}`); });
      lines.push(`began to run ${Report.count(n)} times`);
    } else {
      const key = lane.keys[Math.min(level, lane.keys.length - 1)][cell];
      lines.push(`busy ${share(lane.totals)}, ${Report.count(n)} slices began`);
      if (key !== NOTHING && key !== undefined) lines.push(`most: ${group.words[key]}, ${Report.share(lane.tops[Math.min(level, lane.tops.length - 1)][cell] / WHOLE)}`);
    }
    return lines;
  }

  // Drawing.

  const hasSlices = (group) => group.windows.some(([from, to]) => from <= view.from + 1 && view.to - 1 <= to) && group.lanes.every((lane) => lane.first(view.to) - lane.first(view.from) <= 4 * group.canvas.clientWidth);

  function levelFor(group, wanted) {
    let level = 0;
    while (group.width * 2 ** level < wanted && group.n >> (level + 1) >= 256) level++;
    return level;
  }

  function fit(canvas, height) {
    const ratio = Math.min(devicePixelRatio, 2);
    canvas.style.height = `${height}px`;
    canvas.width = Math.max(Math.round(canvas.clientWidth * ratio), 1);
    canvas.height = Math.round(height * ratio);
    const context = canvas.getContext("2d");
    return [context, canvas.width, canvas.height, ratio];
  }

  const word32 = ([red, green, blue]) => (255 << 24 | blue << 16 | green << 8 | red) >>> 0;

  function drawGroup(group) {
    if (!group.canvas.clientWidth) return;
    const [context, width, height, ratio] = fit(group.canvas, group.lanes.length * ROW);
    const high = (ROW - GAP) * ratio;
    if (!group.colors) {
      group.colors = new Map();
      for (const [mark, word] of group.marks) mark.style.background = Report.css(Report.wordColor(word, group.hues));
    }
    if (hasSlices(group)) {
      const empty = Report.color("lane");
      group.lanes.forEach((lane, at) => {
        context.fillStyle = empty;
        context.fillRect(0, at * ROW * ratio, width, high);
        drawSlices(context, group, lane, at * ROW * ratio, high, width, ratio);
      });
    } else {
      const image = context.createImageData(width, height);
      const pixels = new Uint32Array(image.data.buffer);
      const empty = word32(Report.rgb("lane"));
      group.lanes.forEach((lane, at) => {
        const top = Math.round(at * ROW * ratio);
        pixels.fill(empty, top * width, (top + Math.round(high)) * width);
        drawCells(pixels, group, lane, top, Math.round(high), width);
      });
      context.putImageData(image, 0, 0);
    }
    drawLosses(context, group, width, ratio);
    if (group.at >= 0 && document.activeElement === group.canvas) {
      context.strokeStyle = Report.color("accent");
      context.lineWidth = ratio;
      context.strokeRect(ratio / 2, group.at * ROW * ratio + ratio / 2, width - ratio, high - ratio);
      context.strokeRect(width / 2, group.at * ROW * ratio, 0, high);
    }
  }

  const colorOf = (group, word) => {
    let found = group.colors.get(word);
    if (!found) group.colors.set(word, found = group.bands.length ? Report.rgb(BANDS[group.bands[word]]) : Report.wordColor(group.words[word], group.hues));
    return found;
  };

  function drawSlices(context, group, lane, top, high, width, ratio) {
    const scale = width / (view.to - view.from);
    context.font = `${11 * ratio}px ${getComputedStyle(document.body).fontFamily}`;
    context.textBaseline = "middle";
    let covered = -1;
    for (let i = lane.first(view.from); i < lane.starts.length && lane.starts[i] < view.to; i++) {
      const left = (lane.starts[i] - view.from) * scale, right = (lane.stops[i] - view.from) * scale;
      // Of many slices in one pixel the first is enough.
      if (right <= covered && right - left < 1) continue;
      const from = Math.max(left, 0), wide = Math.max(Math.min(right, width) - from, ratio);
      covered = from + wide;
      context.fillStyle = Report.css(colorOf(group, lane.words[i]));
      context.fillRect(from, top, wide > 3 * ratio ? wide - ratio / 2 : wide, high);
      if (wide > 34 * ratio) {
        const text = group.words[lane.words[i]];
        const band = group.bands[lane.words[i]];
        context.fillStyle = group.bands.length && (band === 0 || band === 2) && !Report.isDark() ? "#fff" : group.bands.length && band < 3 && Report.isDark() ? "#000" : Report.color("ink");
        context.save();
        context.beginPath();
        context.rect(from, top, wide - 4 * ratio, high);
        context.clip();
        context.fillText(text, from + 4 * ratio, top + high / 2);
        context.restore();
      }
    }
  }

  function drawCells(pixels, group, lane, top, high, width) {
    const step = (view.to - view.from) / width;
    const fill = (x, from, to, color) => {
      for (let y = Math.max(from, 0); y < to; y++) pixels[(top + high - 1 - y) * width + x] = color;
    };
    if (lane.bands) {
      const colors = BANDS.map((name) => word32(Report.rgb(name)));
      for (let x = 0; x < width; x++) {
        const from = view.from + x * step;
        let at = 0;
        for (let band = 0; band < 4 && at < high; band++) {
          const share = lane.sum(lane.bands[band], from, from + step) / step;
          if (share <= 1e-9) continue;
          // What is there at all is seen.
          const to = Math.min(at + Math.max(Math.round(share * high), band < 3 ? 1 : 0), high);
          fill(x, at, to, colors[band]);
          at = to;
        }
      }
      return;
    }
    const level = Math.min(levelFor(group, step), lane.keys.length - 1);
    const cells = lane.keys[level], tops = lane.tops[level], cellWidth = group.width * 2 ** level;
    const other = word32(Report.rgb("other"));
    const known = new Map();
    for (let x = 0; x < width; x++) {
      const from = view.from + x * step;
      const share = lane.sum(lane.totals, from, from + step) / step;
      const isPoint = share <= 1e-9;
      if (isPoint && lane.sum(lane.counts, from, from + step) <= 1e-9) continue;
      const cell = Math.min(Math.floor((from + step / 2) / cellWidth), cells.length - 1), key = cells[cell];
      const all = isPoint ? high : Math.min(Math.max(Math.round(share * high), 1), high);
      if (key === NOTHING) { fill(x, 0, all, other); continue; }
      if (!known.has(key)) known.set(key, word32(colorOf(group, key)));
      const most = isPoint ? high : Math.min(Math.max(Math.round(tops[cell] / WHOLE * high), 1), all);
      fill(x, 0, most, known.get(key));
      fill(x, most, all, other);
    }
  }

  function drawLosses(context, group, width, ratio) {
    const scale = width / (view.to - view.from);
    context.fillStyle = Report.color("lost");
    for (const [cpu, start, stop] of losses) {
      if (stop < view.from || start > view.to) continue;
      const left = (start - view.from) * scale, wide = Math.max((stop - start) * scale, 2 * ratio);
      group.lanes.forEach((lane, at) => {
        if (group.key === "sched" && lane.name !== `CPU ${cpu}`) return;
        context.globalAlpha = group.key === "sched" ? 0.35 : 0.12;
        context.fillRect(left, at * ROW * ratio, wide, (ROW - GAP) * ratio);
        context.globalAlpha = 1;
        if (group.key === "sched") context.fillRect(left, at * ROW * ratio, wide, 3 * ratio);
      });
    }
  }

  function drawRuler() {
    const [context, width, height, ratio] = fit(ruler, 24);
    const length = view.to - view.from;
    const target = length / Math.max(width / ratio / 110, 1);
    const power = 10 ** Math.floor(Math.log10(target));
    const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= target);
    const start = facts.timeline.start;
    context.font = `${11 * ratio}px ${getComputedStyle(document.body).fontFamily}`;
    context.fillStyle = context.strokeStyle = Report.color("soft");
    context.textBaseline = "middle";
    // Ticks are at round times of the recording's clock, whose numbers are larger than a double is exact for.
    for (let time = Math.ceil((view.from + start % step) / step) * step - start % step; time <= view.to; time += step) {
      const x = (time - view.from) / length * width;
      context.fillRect(x, height - 5 * ratio, ratio, 5 * ratio);
      const text = Report.clock(time, step * 100);
      if (x + context.measureText(text).width < width) context.fillText(text, x + 3 * ratio, height / 2 - ratio);
    }
    context.fillStyle = Report.color("lost");
    for (const [, from, to] of losses) {
      if (to >= view.from && from <= view.to) context.fillRect((from - view.from) / length * width, 0, Math.max((to - from) / length * width, 2 * ratio), 4 * ratio);
    }
    range.textContent = `${Report.clock(view.from, length)} to ${Report.clock(view.to, length)}: ${Report.time(length)}`;
  }

  function drawOverview() {
    const [context, width, height, ratio] = fit(overview, 28);
    const lanes = groups[0].lanes, step = span / width;
    context.fillStyle = Report.color("lane");
    context.fillRect(0, 0, width, height);
    context.fillStyle = Report.color("bar");
    for (let x = 0; x < width; x++) {
      let share = 0;
      for (const lane of lanes) share += lane.sum(lane.totals ?? lane.bands[0], x * step, (x + 1) * step) / step / lanes.length;
      context.fillRect(x, height * (1 - Math.min(share, 1)), 1, height);
    }
    context.fillStyle = Report.color("lost");
    for (const [, from, to] of losses) context.fillRect(from / step, 0, Math.max((to - from) / step, 2 * ratio), 4 * ratio);
    const left = view.from / step, right = view.to / step;
    context.fillStyle = Report.color("paper");
    context.globalAlpha = 0.7;
    context.fillRect(0, 0, left, height);
    context.fillRect(right, 0, width - right, height);
    context.globalAlpha = 1;
    context.strokeStyle = Report.color("accent");
    context.lineWidth = 2 * ratio;
    context.strokeRect(left, 0, Math.max(right - left, 2 * ratio), height);
  }

  const jump = (event) => {
    if (event.buttons !== 1) return;
    const { left, width } = overview.getBoundingClientRect();
    const around = (event.clientX - left) / width * span, half = (view.to - view.from) / 2;
    look(around - half, around + half);
  };
  overview.addEventListener("pointerdown", jump);
  overview.addEventListener("pointermove", jump);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { for (const group of groups) group.colors = undefined; });
  for (const element of place.querySelectorAll("details")) element.addEventListener("toggle", () => Report.redraw());
  Report.redraws.push(() => {
    const begin = performance.now();
    drawOverview();
    drawRuler();
    groups.forEach(drawGroup);
    Report.timing.draw = performance.now() - begin;
  });
};
