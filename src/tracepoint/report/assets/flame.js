/* The flame graph: a row for each depth; a click on a part makes it as wide as the page. */
Report.drawFlame = () => {
  const tree = Report.facts.flame;
  if (tree) new Flame(tree, document.getElementById(tree.place).querySelector("div"));
};

class Flame {
  constructor(tree, place) {
    this.root = tree;
    this.path = [tree];
    this.reading = Report.el("p", { class: "note", "aria-live": "polite" });
    this.frame = Report.el("div", { class: "flame-frame", role: "group", "aria-label": "Flame graph: Enter widens a part, Escape goes back" });
    this.frame.addEventListener("keydown", (event) => { if (event.key === "Escape" && this.path.length > 1) this.open(this.path.slice(0, -1)); });
    this.frame.addEventListener("pointerleave", () => Report.tell(""));
    place.append(this.reading, this.frame);
    Report.redraws.push(() => this.redraw());
  }

  open(path) {
    this.path = path;
    this.draw();
    this.frame.querySelector("[data-here]")?.focus();
  }

  /* Drawing again creates new buttons: keep the keyboard focus on the same one. */
  redraw() {
    const at = [...this.frame.children].indexOf(document.activeElement);
    this.draw();
    this.frame.children[at]?.focus();
  }

  draw() {
    const made = [];
    const top = this.path.at(-1);
    this.path.forEach((node, depth) => made.push(this.part(node, this.path.slice(0, depth + 1), 0, 100, depth)));
    let deepest = this.path.length;
    const visit = (node, path, left, depth) => {
      for (const child of node.c) {
        const width = child.v / (top.v || 1) * 100;
        if (width < 0.12) break;
        const own = [...path, child];
        made.push(this.part(child, own, left, width, depth));
        deepest = Math.max(deepest, depth + 1);
        visit(child, own, left, depth + 1);
        left += width;
      }
    };
    visit(top, this.path, 0, this.path.length);
    this.frame.style.height = `${deepest * 22}px`;
    this.frame.replaceChildren(...made);
    this.reading.textContent = this.text(top).replace("\n", ": ");
  }

  text(node) { return `${node.n}\n${Report.time(node.v)}, ${Report.share(node.v / (this.root.v || 1))} of all time off the CPUs`; }

  part(node, path, left, width, depth) {
    const about = this.text(node);
    const button = Report.el("button", { type: "button", "aria-label": about.replace("\n", ": ") }, width > 1.5 ? node.n : "");
    if (node === this.path.at(-1)) button.dataset.here = "";
    Object.assign(button.style, { left: `${left}%`, width: `${width}%`, top: `${depth * 22}px`, background: Report.css(Report.wordColor(node.n)) });
    button.addEventListener("click", () => { Report.tell(""); this.open(path); });
    button.addEventListener("pointermove", (event) => Report.tell(about, event.clientX, event.clientY));
    return button;
  }
}
