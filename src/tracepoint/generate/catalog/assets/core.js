/* What all parts of the catalog share: data that comes in by scripts, and elements made from text. */
"use strict";

const Catalog = (() => {
  const arrived = new Map();
  const waiting = new Map();

  /* Every data file is one call of this. */
  function receive(name, data) {
    arrived.set(name, data);
  }

  /* Return a promise of a data file: a page opened from a folder may load scripts, but not fetch. */
  function load(name) {
    if (!waiting.has(name)) {
      waiting.set(name, new Promise((resolve, reject) => {
        const script = document.createElement("script");
        script.src = `data/${name}.js`;
        script.onload = () => arrived.has(name) ? resolve(arrived.get(name)) : reject(new Error(name));
        script.onerror = () => {
          waiting.delete(name);
          script.remove();
          reject(new Error(name));
        };
        document.head.append(script);
      }));
    }
    return waiting.get(name);
  }

  /* Make an element. Children are elements or texts, never markup: names and prose come from strangers. */
  function el(tag, attributes, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) {
      if (value === true) element.setAttribute(name, "");
      else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
    }
    element.append(...children.flat(Infinity).filter((child) => child !== null && child !== ""));
    return element;
  }

  const eventLink = (fullName, version) =>
    `#/event/${encodeURIComponent(fullName).replaceAll("%3A", ":")}${version ? `@${encodeURIComponent(version)}` : ""}`;
  const systemLink = (system) => `#/system/${encodeURIComponent(system)}`;
  const searchLink = (query) => `#/search/${encodeURIComponent(query)}`;

  const plural = (count, word) => `${count.toLocaleString("en")} ${word}${count === 1 ? "" : "s"}`;

  /* A button that puts a text into the clipboard and says so. */
  function copyButton(text, what) {
    const button = el("button", { type: "button", class: "copy", "aria-label": `Copy ${what}` }, "Copy");
    button.addEventListener("click", async () => {
      const done = await copy(text);
      button.textContent = done ? "Copied" : "Select and copy by hand";
      setTimeout(() => { button.textContent = "Copy"; }, 1600);
    });
    return button;
  }

  async function copy(text) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      /* No clipboard without https: the old way still works. */
      const area = el("textarea", { class: "unseen", "aria-hidden": "true" });
      area.value = text;
      document.body.append(area);
      area.select();
      const done = document.execCommand("copy");
      area.remove();
      return done;
    }
  }

  /* Names that may stand in a command line as they are; no command is offered for others. */
  const isPlain = (name) => /^[A-Za-z0-9_][A-Za-z0-9_-]*$/.test(name);

  return { receive, load, el, eventLink, systemLink, searchLink, plural, copyButton, isPlain };
})();
