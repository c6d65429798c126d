/* Lists of tracepoints: what a search found, a system, what a version changed; and the start. */
"use strict";

Catalog.views = (() => {
  const { el, plural, eventLink, systemLink, searchLink } = Catalog;
  const FLAG_WORDS = [[2, "custom"], [4, "no event"], [8, "no caller"]];
  const CHANGE_WORDS = [[1, "record"], [2, "prototype"], [4, "print"]];
  const PAGE = 400;

  /* badges: new in, gone in, unused… of the event with that number. */
  function badges(data, id) {
    const found = [];
    const seen = data.seen[id];
    const labels = data.labels;
    const first = 31 - Math.clz32(seen & -seen);
    const last = 31 - Math.clz32(seen);
    if (first > 0) found.push(el("span", { class: "badge new" }, `new in ${labels[first]}`));
    if (last < labels.length - 1) found.push(el("span", { class: "badge gone" }, `gone in ${labels[last + 1]}`));
    for (const [bit, word] of FLAG_WORDS) {
      if (data.flags[id] & bit) found.push(el("span", { class: `badge${bit === 8 ? " warn" : ""}` }, word));
    }
    const changed = data.changed.get(id);
    if (changed) found.push(el("span", { class: "badge change" }, `changed in ${changed}`));
    return found;
  }

  /* The text with the parts that match one of the words marked. */
  function marked(text, words) {
    const lower = text.toLowerCase();
    const spans = [];
    for (const word of words) {
      const at = word ? lower.indexOf(word) : -1;
      if (at >= 0) spans.push([at, at + word.length]);
    }
    spans.sort((a, b) => a[0] - b[0]);
    const parts = [];
    let from = 0;
    for (const [start, end] of spans) {
      if (start < from) continue;
      parts.push(text.slice(from, start), el("mark", {}, text.slice(start, end)));
      from = end;
    }
    return [...parts, text.slice(from)];
  }

  const REASONS = new Map([
    ["fields", "field"], ["callers", "called in"], ["files", "in"], ["classes", "class"], ["prose", ""],
  ]);

  /* Why an event was found, when its name does not say it; else what its comment begins with. */
  function reason(data, id, found, words) {
    const column = data.shown && data.shown[found.reasonOf(id)];
    const word = REASONS.get(found.reasonOf(id));
    if (column && word !== undefined) {
      const values = column.values[column.of[id]].split("\n");
      const close = values.filter((value) => words.some((w) => value.toLowerCase().includes(w)));
      const text = word === "" ? around(close[0] || "", words) : close.slice(0, 3).join(", ");
      if (text) return el("span", { class: "why" }, word ? `${word} ` : "", marked(text, words));
    }
    if (!data.shown) return el("span", { class: "why" });
    const text = data.shown.summaries.values[data.shown.summaries.of[id]];
    return text ? el("span", { class: "why" }, text) : el("span", { class: "why fields-of" }, fieldsOf(data, id));
  }

  const fieldsOf = (data, id) => data.shown.fields.values[data.shown.fields.of[id]].replaceAll("\n", ", ");

  function around(text, words) {
    const at = Math.max(0, ...words.map((word) => text.toLowerCase().indexOf(word)));
    const from = Math.max(0, at - 40);
    return `${from ? "…" : ""}${text.slice(from, from + 140)}`;
  }

  /* One result. The list is the one thing that has the keyboard, so the links are out of the tab order. */
  function result(data, id, found, words, number) {
    const system = data.systemOf(id);
    const name = data.names[id];
    const href = eventLink(`${system}:${name}`);
    return el("a", { role: "option", id: `result-${number}`, "aria-selected": "false", href, tabindex: "-1" },
      el("span", { class: "full-name" },
        el("span", { class: "system" }, marked(system, words), ":"), marked(name, words)),
      el("span", { class: "badges" }, badges(data, id)),
      reason(data, id, found, words));
  }

  /* All events of a system, those of system calls in pairs. */
  function systemPage(data, number) {
    const [name, count] = data.start.systems[number];
    const first = data.firstOf[number];
    const ids = Array.from({ length: count }, (_, i) => first + i);
    const rows = ids.map((id) => row(data, id, name));
    const list = el("ul", { class: "events" }, rows.slice(0, PAGE));
    if (rows.length > PAGE) {
      /* The rest a little later: a thousand rows must not keep the first from being seen. */
      setTimeout(() => list.append(...rows.slice(PAGE)), 0);
    }
    return el("article", {},
      el("header", { class: "title" },
        el("p", { class: "crumb" }, el("a", { href: "#/" }, "All systems")),
        el("h1", { tabindex: "-1" }, name || "(no system)"),
        el("p", { class: "sum" }, `${plural(count, "tracepoint")}. `,
          el("a", { href: searchLink(`system:${name} `) }, "Search in them"), " · ",
          el("a", { href: `plain/${data.start.plain[number]}.html` }, "all on one plain page"))),
      list);
  }

  function row(data, id, system) {
    const fields = data.shown ? fieldsOf(data, id) : "";
    const text = data.shown ? data.shown.summaries.values[data.shown.summaries.of[id]] : "";
    return el("li", {}, el("a", { href: eventLink(`${system}:${data.names[id]}`) },
      el("span", { class: "full-name" }, data.names[id]),
      el("span", { class: "badges" }, badges(data, id)),
      text ? el("span", { class: "why" }, text) : "",
      fields ? el("span", { class: "fields-of" }, fields) : ""));
  }

  /* What a version brought: four lists by system, each folded when long. */
  function historyPage(data, number) {
    const { label } = data.start.versions[number];
    const before = data.start.versions[number - 1].label;
    const added = [];
    const removed = [];
    for (let id = 0; id < data.names.length; id++) {
      const now = (data.seen[id] >> number) & 1;
      const then = (data.seen[id] >> (number - 1)) & 1;
      if (now && !then) added.push([id]);
      if (then && !now) removed.push([id]);
    }
    const changed = data.changes.filter((change) => change[1] === number && change[2] & 7);
    const breaking = changed.filter((change) => change[2] & 8);
    const harmless = changed.filter((change) => !(change[2] & 8));
    const lists = [
      ["added", "Added", added, "They are new: nothing reads them yet."],
      ["removed", "Removed", removed, "Enabling them fails now."],
      ["breaking", "Changed so that programs break", breaking,
        "Fields that moved, went away or have another size, type or sign, or another prototype."],
      ["harmless", "Changed otherwise", harmless, "The printed line, names of types, fields added at the end."],
    ];
    return el("article", {},
      el("header", { class: "title" },
        el("p", { class: "crumb" }, el("a", { href: "#/" }, "All systems")),
        el("h1", { tabindex: "-1" }, `${before} → ${label}`),
        el("nav", { class: "jumps", "aria-label": "Kinds of changes" }, lists.map(([id, title, ids]) => jump(id, title, ids.length)))),
      lists.map(([id, title, ids, note]) => changeList(data, id, title, ids, note)));
  }

  function jump(id, title, count) {
    const button = el("button", { type: "button" }, el("b", {}, count.toLocaleString("en")), title);
    button.addEventListener("click", () => {
      const heading = document.getElementById(`list-${id}`);
      heading.focus();
      heading.scrollIntoView();
    });
    return button;
  }

  function changeList(data, id, title, changes, note) {
    const groups = new Map();
    for (const [event, , bits] of changes) {
      const system = data.systemOf(event);
      if (!groups.has(system)) groups.set(system, []);
      groups.get(system).push([event, bits || 0]);
    }
    return el("section", { class: "moves" },
      el("h2", { id: `list-${id}`, tabindex: "-1" }, title, el("span", { class: "how-many" }, changes.length.toLocaleString("en"))),
      changes.length ? el("p", { class: "note" }, note) : el("p", { class: "note" }, "None."),
      [...groups].map(([system, events]) => el("div", { class: "group" },
        el("h3", {}, el("a", { href: systemLink(system) }, system || "(no system)"), el("span", { class: "how-many" }, String(events.length))),
        el("ul", {}, events.map(([event, bits]) => el("li", {},
          el("a", { href: eventLink(`${system}:${data.names[event]}`) }, data.names[event]),
          CHANGE_WORDS.filter(([bit]) => bits & bit).map(([, word]) => [" ", el("span", { class: "badge change" }, word)])))))));
  }

  /* What the start shows beyond the lists that are there without JavaScript. */
  function intro(start) {
    const examples = ["sched_switch", "field:pid system:signal", "file:mm/ caller:fault", "unused:"];
    const last = start.versions[start.versions.length - 1];
    if (start.versions.length > 1) examples.push(`since:${last.label}`, `breaks:${last.label} field:ino`);
    return [
      el("p", { class: "examples" }, el("span", {}, "Try "), examples.map((query) =>
        [el("a", { href: searchLink(query) }, query), " "])),
      el("details", {}, el("summary", {}, "All that a search can ask"),
        help(start.versions.map((version) => version.label))),
    ];
  }

  /* Filters, told where nothing was found and behind the question mark. */
  function help(labels) {
    const rows = [
      ["field:pid", "has such a field"],
      ["system:ext4", "in such a system"],
      ["file:mm/", "declared or called in such a file"],
      ["caller:do_exit", "called in such a function"],
      ["class:sched_stat_template", "of such an event class"],
      ["unused:", "fired by nothing in the tree"],
      [`since:${labels[labels.length - 1]}`, "came with that version or later"],
      [`changed:${labels[labels.length - 1]}`, "changed there; also layout:, proto:, print:, breaks:"],
      ["-word", "does not have it"],
    ];
    return el("dl", { class: "help" }, rows.map(([query, text]) =>
      [el("dt", {}, el("a", { href: searchLink(query) }, query)), el("dd", {}, text)]));
  }

  function message(title, ...texts) {
    return el("article", {}, el("h1", { tabindex: "-1" }, title), texts.map((text) => el("p", {}, text)));
  }

  return { result, systemPage, historyPage, intro, help, message };
})();
