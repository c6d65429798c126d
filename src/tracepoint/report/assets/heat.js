/* Heat maps: the darker a cell, the more samples; a click shows its time in the timeline. */
Report.drawHeats = () => {
  for (const heat of Report.facts.heats ?? []) new HeatMap(heat, document.getElementById(heat.place).querySelector("div"));
};

class HeatMap {
  constructor(heat, place) {
    Object.assign(this, heat);
    this.counts = Report.column(heat.counts);
    this.most = this.counts.reduce((a, b) => Math.max(a, b), 1);
    this.at = null;
    this.canvas = Report.el("canvas", {
      tabindex: 0, role: "img",
      "aria-label": `${heat.title}: ${Report.count(heat.n)} samples by time and length, from ${Report.time(this.lengthOf(0))} to ${Report.time(this.lengthOf(this.n_rows))}. Arrow keys read cells, Enter shows the time of a cell in the timeline.`,
    });
    this.labels = Report.el("div", { class: "labels", "aria-hidden": "true" });
    const { span } = Report.facts.timeline;
    const times = Report.el("div", { class: "times", "aria-hidden": "true" }, ...[0, 0.5, 1].map((part) => Report.el("span", {}, Report.clock(span * part, span))));
    const scale = Report.el("p", { class: "scale" }, "1", Report.el("i"), `${Report.count(this.most)} in a cell of ${Report.time(span / this.columns)}`);
    this.reading = Report.el("p", { class: "unseen", "aria-live": "polite" });
    place.append(Report.el("div", { class: "heat-frame" }, this.labels, this.canvas, times), scale, this.reading);
    this.canvas.addEventListener("pointermove", (event) => this.hover(event));
    this.canvas.addEventListener("pointerleave", () => Report.tell(""));
    this.canvas.addEventListener("click", (event) => { this.at = this.cellAt(event); this.show(); });
    this.canvas.addEventListener("keydown", (event) => this.press(event));
    Report.redraws.push(() => this.draw());
  }

  lengthOf(row) { return 2 ** ((this.low + row) / this.by_octave); }

  cellAt(event) {
    const { left, top, width, height } = this.canvas.getBoundingClientRect();
    const clamp = (value, n) => Math.min(Math.max(Math.floor(value), 0), n - 1);
    return [clamp((event.clientX - left) / width * this.columns, this.columns), clamp((1 - (event.clientY - top) / height) * this.n_rows, this.n_rows)];
  }

  text([column, row]) {
    const { span } = Report.facts.timeline;
    const width = span / this.columns;
    const from = Report.clock(column * width, width), to = Report.clock((column + 1) * width, width);
    const low = this.low + row ? this.lengthOf(row) : 0;
    const n = this.counts[row * this.columns + column];
    return `${Report.count(n)} of ${Report.time(low)} to ${Report.time(this.lengthOf(row + 1))}\nbegan ${from} to ${to}`;
  }

  hover(event) { Report.tell(this.text(this.cellAt(event)), event.clientX, event.clientY); }

  press(event) {
    const moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
    if (event.key === "Enter" && this.at) this.show();
    const move = moves[event.key];
    if (!move) return;
    event.preventDefault();
    const [column, row] = this.at ?? [Math.floor(this.columns / 2), Math.floor(this.n_rows / 2)];
    this.at = [Math.min(Math.max(column + move[0], 0), this.columns - 1), Math.min(Math.max(row + move[1], 0), this.n_rows - 1)];
    this.reading.textContent = this.text(this.at);
    const box = this.canvas.getBoundingClientRect();
    Report.tell(this.text(this.at), box.left + (this.at[0] + 0.5) / this.columns * box.width, box.top + (1 - (this.at[1] + 0.5) / this.n_rows) * box.height);
    this.draw();
  }

  show() {
    const width = Report.facts.timeline.span / this.columns;
    Report.look(this.at[0] * width, (this.at[0] + 1) * width);
    this.draw();
  }

  draw() {
    const ratio = Math.min(devicePixelRatio, 2);
    const high = Math.min(Math.max(this.n_rows * 5, 120), 340);
    this.canvas.style.height = `${high}px`;
    const width = this.canvas.width = Math.max(Math.round(this.canvas.clientWidth * ratio), 1);
    const height = this.canvas.height = Math.round(high * ratio);
    const context = this.canvas.getContext("2d");
    const [low, top] = [Report.rgb("heat-low"), Report.rgb("heat-high")];
    const most = Math.log(this.most + 1);
    for (let row = 0; row < this.n_rows; row++) {
      for (let column = 0; column < this.columns; column++) {
        const n = this.counts[row * this.columns + column];
        if (!n) continue;
        const part = Math.log(n) / Math.max(most, 1e-9);
        context.fillStyle = Report.css(low.map((value, i) => Math.round(value + (top[i] - value) * part)));
        const x = Math.floor(column / this.columns * width), y = Math.floor((1 - (row + 1) / this.n_rows) * height);
        context.fillRect(x, y, Math.ceil(width / this.columns) , Math.ceil(height / this.n_rows));
      }
    }
    if (this.at) {
      context.strokeStyle = Report.color("bad");
      context.lineWidth = ratio;
      context.strokeRect(this.at[0] / this.columns * width, (1 - (this.at[1] + 1) / this.n_rows) * height, width / this.columns, height / this.n_rows);
    }
    this.label(high);
  }

  label(high) {
    const found = [];
    const least = Math.log2(10) * this.by_octave;
    const step = least * Math.ceil(18 / (high / this.n_rows * least));
    for (let ten = Math.ceil(this.low / step) * step; ten <= this.low + this.n_rows; ten += step) {
      const span = Report.el("span", {}, Report.time(Math.round(2 ** (ten / this.by_octave))).replace(/\.0+ /, " "));
      span.style.bottom = `${(ten - this.low) / this.n_rows * high}px`;
      found.push(span);
    }
    this.labels.replaceChildren(...found);
  }
}
