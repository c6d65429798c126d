"use strict";
/* What all parts of a report share: columns of the data block, figures as text, colours, the tooltip. */

const Report = { facts: JSON.parse(document.getElementById("facts").textContent), redraws: [], timing: {} };

(() => {
  const $ = (id) => document.getElementById(id);

  /** Make an element with attributes and children. */
  Report.el = (tag, attributes = {}, ...children) => {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
      else if (value !== null) made.setAttribute(name, value);
    }
    made.append(...children);
    return made;
  };

  let block = null;
  Report.load = async () => {
    const text = atob($("data").textContent);
    const bytes = new Uint8Array(text.length);
    for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    block = new Uint8Array(await new Response(stream).arrayBuffer());
  };

  const arrays = { B: Uint8Array, H: Uint16Array, I: Uint32Array };

  /** Return the numbers of a column, which is stored as the lowest bytes of all, then the next, and so on. */
  Report.column = ([kind, at, n, size]) => {
    if (kind === "v") return varints(at, n, size);
    const found = new arrays[kind](n);
    for (let byte = 0; byte < found.BYTES_PER_ELEMENT; byte++) {
      const from = at + byte * n;
      const unit = 256 ** byte;
      for (let i = 0; i < n; i++) found[i] += block[from + i] * unit;
    }
    return found;
  };

  function varints(at, n, size) {
    const found = new Float64Array(n);
    for (let i = 0, from = at; i < n && from < at + size; i++) {
      let unit = 1, value = 0;
      for (;;) {
        const byte = block[from++];
        value += (byte & 127) * unit;
        if (byte < 128) break;
        unit *= 128;
      }
      found[i] = value;
    }
    return found;
  }

  const units = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"]];
  Report.time = (ns) => {
    for (const [size, unit] of units) {
      if (Math.abs(ns) >= size) {
        const value = ns / size;
        return `${value.toFixed(Math.abs(value) < 10 ? 3 : Math.abs(value) < 100 ? 2 : 1)} ${unit}`;
      }
    }
    return `${Math.round(ns)} ns`;
  };
  Report.count = (n) => n.toLocaleString("en");
  Report.share = (part) => `${(100 * part).toFixed(2)} %`;

  /** Return a time of the recording's clock, with as many digits as a range needs. */
  Report.clock = (ns, range) => {
    const digits = Math.min(Math.max(Math.ceil(-Math.log10(Math.max(range, 1) / 1e9)) + 2, 0), 9);
    return `${((Report.facts.timeline.start + ns) / 1e9).toFixed(digits)} s`;
  };

  const style = getComputedStyle(document.documentElement);
  Report.color = (name) => style.getPropertyValue(`--${name}`).trim();
  Report.isDark = () => matchMedia("(prefers-color-scheme: dark)").matches;

  /** Return a word without its numbers: words that differ in numbers only have one colour. */
  Report.plain = (word) => word.replace(/[\d/:.-]+/g, "");
  /** Return [red, green, blue] of a word; `hues` are those that plain words have, others have one by their letters. */
  Report.wordColor = (word, hues) => {
    const plain = Report.plain(word);
    let hash = 2166136261;
    for (const letter of plain) hash = Math.imul(hash ^ letter.codePointAt(0), 16777619);
    const hue = hues?.get(plain) ?? ((hash >>> 0) * 137.508) % 360;
    return hsl(hue, 0.5, Report.isDark() ? 0.27 : 0.72);
  };

  function hsl(hue, saturation, lightness) {
    const a = saturation * Math.min(lightness, 1 - lightness);
    return [0, 8, 4].map((n) => {
      const k = (n + hue / 30) % 12;
      return Math.round(255 * (lightness - a * Math.max(-1, Math.min(k - 3, 9 - k, 1))));
    });
  }
  Report.rgb = (name) => {
    const digits = Report.color(name).slice(1);
    return [0, 2, 4].map((at) => parseInt(digits.slice(at, at + 2), 16));
  };
  Report.css = ([red, green, blue]) => `rgb(${red} ${green} ${blue})`;

  const tip = $("tip");
  Report.tell = (text, x, y) => {
    tip.hidden = !text;
    if (!text) return;
    tip.textContent = text;
    const { width, height } = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(Math.min(x + 14, innerWidth - width - 8), 4)}px`;
    tip.style.top = `${y + 18 + height > innerHeight ? y - height - 10 : y + 18}px`;
  };

  let waiting = 0;
  /** Draw all again before the next frame. */
  Report.redraw = () => {
    waiting ||= requestAnimationFrame(() => {
      waiting = 0;
      for (const draw of Report.redraws) draw();
    });
  };
  document.documentElement.classList.add("js");
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => Report.redraw());
  addEventListener("resize", () => Report.redraw());
})();
