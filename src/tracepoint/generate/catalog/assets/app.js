/* The page as a whole: what the address means, the search box, the keyboard. */
"use strict";

(() => {
  const { load, el, eventLink, searchLink, plural, views } = Catalog;
  const FIRST = 20;
  const MORE = 200;
  const box = document.getElementById("query");
  const view = document.getElementById("view");
  const found = document.getElementById("found");
  const results = document.getElementById("results");
  const count = document.getElementById("count");
  const more = document.getElementById("more");
  const clear = document.getElementById("clear");
  const startView = document.getElementById("start");
  let data = null;
  let searcher = null;
  let active = -1;
  let limit = FIRST;
  let before = "#/";
  let route = 0;
  let address = null; // the query that the address does not tell yet
  let addressTimer = 0;

  // Data: the start, then names, then all words; a search uses what has come.

  const lower = (texts) => texts.map((text) => text.toLowerCase());
  const column = (values) => ({ values, of: Int32Array.from(values.keys()) });

  function makeData(start, names) {
    const firstOf = [];
    const systemNumber = new Int32Array(names.flags.length);
    let at = 0;
    start.systems.forEach(([, size], number) => {
      firstOf.push(at);
      systemNumber.fill(number, at, at + size);
      at += size;
    });
    const changed = new Map();
    for (const [id, version, bits] of names.changes) {
      if (bits & 7) changed.set(id, start.versions[version].label);
    }
    const list = names.names.split("\n");
    return {
      start, firstOf, changed, names: list, count: list.length,
      seen: names.seen, flags: names.flags, changes: names.changes,
      labels: start.versions.map((version) => version.label),
      systemOf: (id) => start.systems[systemNumber[id]][0],
      columns: {
        names: column(lower(list)),
        systems: { values: lower(start.systems.map(([name]) => name)), of: systemNumber },
      },
      shown: null,
    };
  }

  function addWords(words) {
    data.shown = words;
    for (const name of ["fields", "callers", "files", "classes", "prose"]) {
      data.columns[name] = { values: lower(words[name].values), of: Int32Array.from(words[name].of) };
    }
    searcher.search("wram up the serach", 1); // so that the first key is as fast as the others, slips too
  }

  let namesComing = null;
  function needNames() {
    namesComing ||= Promise.all([load("start"), load("names")]).then(([start, names]) => {
      data = makeData(start, names);
      searcher = Catalog.makeSearcher(data);
    });
    return namesComing;
  }

  let wordsComing = null;
  function needWords() {
    wordsComing ||= Promise.all([needNames(), load("words")]).then(([, words]) => addWords(words));
    return wordsComing;
  }

  // Searching.

  function showResults() {
    const query = box.value;
    const began = performance.now();
    const what = searcher.search(query, limit);
    const searched = performance.now();
    const words = what.terms.filter((term) => !term.not && term.text).map((term) => term.text)
      .flatMap((text) => text.includes(":") ? text.split(":") : [text]);
    results.replaceChildren(...what.ids.map((id, number) => views.result(data, id, what, words, number)));
    const rest = what.total - what.ids.length;
    more.replaceChildren(...(rest > 0 ? [moreButton(rest)] : what.total ? [] : [nothing(query)]));
    const isUnfinished = what.terms.length === 0; // `field:` asks for nothing yet
    count.replaceChildren(what.total ? plural(what.total, "tracepoint") : isUnfinished ? "" : "Nothing found", ...systemsNamed(what.terms));
    select(what.total ? 0 : -1, false);
    box.setAttribute("aria-expanded", String(what.total > 0));
    Catalog.timing = {
      query, total: what.total, count: data.count, words: data.shown !== null,
      search: searched - began, whole: performance.now() - began,
    };
  }

  /* A word that is the name of a system leads to the system too. */
  function systemsNamed(terms) {
    const words = new Set(terms.filter((term) => !term.not && ["", "system"].includes(term.key)).map((term) => term.text.replace(/:$/, "")));
    return data.start.systems.filter(([name]) => name && words.has(name.toLowerCase()))
      .map(([name]) => [" · ", el("a", { href: Catalog.systemLink(name) }, `system ${name}`)]).flat();
  }

  function moreButton(rest) {
    const button = el("button", { type: "button", class: "wide-button" }, `Show more (${rest.toLocaleString("en")})`);
    button.addEventListener("click", () => {
      const from = results.children.length;
      limit += MORE;
      showResults();
      select(from);
      box.focus();
    });
    return button;
  }

  function nothing(query) {
    const word = query.trim().toLowerCase().split(/\s+/).pop().replace(/^.*:/, "");
    const near = word.length > 2 ? searcher.nearest(word, 5) : [];
    return el("div", { class: "nothing" },
      near.length ? el("p", {}, "Did you mean ", near.map((id, i) => {
        const name = `${data.systemOf(id)}:${data.names[id]}`;
        return [i ? ", " : "", el("a", { href: eventLink(name) }, name)];
      }), "?") : "",
      el("h2", {}, "What a search can ask"), views.help(data.labels));
  }

  /* Asking for a place costs a layout, so typing does not. */
  function select(number, scrolls = true) {
    results.children[active]?.setAttribute("aria-selected", "false");
    active = number;
    const chosen = results.children[active];
    if (chosen) {
      chosen.setAttribute("aria-selected", "true");
      box.setAttribute("aria-activedescendant", chosen.id);
      if (scrolls) chosen.scrollIntoView({ block: "nearest" });
    } else {
      box.removeAttribute("aria-activedescendant");
    }
  }

  /* A query is an address too, but typing is no step in the history. */
  function typed() {
    limit = FIRST;
    const query = box.value;
    if (!query.trim()) {
      go(before);
      return;
    }
    const isSearching = location.hash.startsWith("#/search/");
    if (isSearching) {
      address = query;
      clearTimeout(addressTimer);
      addressTimer = setTimeout(tellAddress, 300);
    } else {
      before = location.hash || "#/";
      history.pushState({ before }, "", searchLink(query));
    }
    document.title = `${query} – ${startView.dataset.title}`;
    show(null);
    answer();
  }

  /* Browsers allow some hundred changes of the address a minute, and Safari throws at the next one: so
     it follows the typing a little later, and at the latest when the page is left. */
  function tellAddress() {
    clearTimeout(addressTimer);
    if (address === null) return;
    try {
      history.replaceState(history.state, "", searchLink(address));
    } catch (error) {
      if (error.name !== "SecurityError") throw error;
    }
    address = null;
  }

  function answer() {
    const mine = ++route;
    if (searcher) showResults();
    else needNames().then(() => { if (mine === route) showResults(); }, failed);
    if (!data || !data.shown) needWords().then(() => { if (mine === route) showResults(); }, failed);
  }

  // Addresses.

  function go(hash) {
    tellAddress();
    if (location.hash === hash) render();
    else location.hash = hash;
  }

  function decoded(text) {
    try {
      return decodeURIComponent(text);
    } catch {
      return text;
    }
  }

  /* Show a page, or the results when there is none. */
  function show(page) {
    found.hidden = page !== null;
    view.hidden = page === null;
    clear.hidden = !box.value;
    if (page === null) return;
    box.setAttribute("aria-expanded", "false");
    box.removeAttribute("aria-activedescendant");
    view.replaceChildren(page);
    const title = page === startView ? "" : page.querySelector("h1").textContent;
    document.title = title ? `${title} – ${startView.dataset.title}` : startView.dataset.title;
    window.scrollTo(0, 0);
    if (document.activeElement !== box && page !== startView) page.querySelector("h1").focus({ preventScroll: true });
  }

  function failed(error) {
    show(views.message("Something is missing", `The file data/${error.message}.js of this catalog could not be loaded.`));
  }

  async function render() {
    if (location.hash && !location.hash.startsWith("#/")) return; // a place in this page
    address = null;
    const mine = ++route;
    const [, kind, rest] = /^#\/(\w*)\/?([^]*)$/.exec(location.hash) || [null, "", ""];
    if (kind === "search") {
      box.value = decoded(rest);
      before = history.state?.before || "#/";
      show(null);
      answer();
      return;
    }
    before = location.hash || "#/";
    box.value = "";
    try {
      const page = await pageOf(kind, rest);
      if (mine === route) show(page);
    } catch (error) {
      if (mine === route) failed(error);
    }
  }

  async function pageOf(kind, rest) {
    if (kind === "") return startView;
    await needNames();
    if (kind === "event") return eventOf(decoded(rest));
    await needWords();
    if (kind === "system") {
      const number = data.start.systems.findIndex(([name]) => name === decoded(rest));
      return number < 0 ? views.message("No such system", decoded(rest)) : views.systemPage(data, number);
    }
    if (kind === "history") {
      const number = data.labels.indexOf(decoded(rest));
      if (number > 0) return views.historyPage(data, number);
    }
    return views.message("No such page", location.hash);
  }

  async function eventOf(text) {
    let id = numberOf(text);
    let label = "";
    const cut = text.lastIndexOf("@");
    if (id < 0 && cut > 0) {
      label = text.slice(cut + 1);
      id = numberOf(text.slice(0, cut));
    }
    if (id < 0) return views.message("No such tracepoint", text);
    const chunks = data.start.chunks;
    let chunk = chunks.length - 1;
    while (chunks[chunk] > id) chunk--;
    const event = (await load(`events-${chunk}`))[id - chunks[chunk]];
    const asked = data.labels.indexOf(label);
    const newest = 31 - Math.clz32(data.seen[id]);
    return Catalog.eventPage(event, asked >= 0 && event.seen[asked] ? asked : newest, data.start);
  }

  /* The number of `system:name`; neither half is free of colons for sure. */
  function numberOf(fullName) {
    return data.names.findIndex((name, id) =>
      fullName.length === name.length + data.systemOf(id).length + 1
      && fullName.endsWith(name) && fullName === `${data.systemOf(id)}:${name}`);
  }

  // The keyboard.

  function onBoxKey(event) {
    if (event.isComposing || event.altKey || event.ctrlKey || event.metaKey) return;
    const last = results.children.length - 1;
    if (event.key === "Escape") {
      event.preventDefault();
      if (box.value) {
        box.value = "";
        go(before);
      } else {
        box.blur();
      }
    } else if (!found.hidden && last >= 0) {
      if (event.key === "ArrowDown") move(event, active >= last ? 0 : active + 1);
      else if (event.key === "ArrowUp") move(event, active <= 0 ? last : active - 1);
      else if (event.key === "PageDown") move(event, Math.min(last, active + 10));
      else if (event.key === "PageUp") move(event, Math.max(0, active - 10));
      else if (event.key === "Enter") {
        event.preventDefault();
        const link = results.children[Math.max(active, 0)];
        box.blur();
        tellAddress();
        location.hash = link.getAttribute("href");
      }
    }
  }

  function move(event, number) {
    event.preventDefault();
    select(number);
  }

  function onPageKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target === box) return;
    const isTyping = event.target.matches && event.target.matches("input, textarea, select");
    if (event.key === "/" && !isTyping) {
      event.preventDefault();
      box.focus();
      box.select();
    } else if (event.key === "Escape" && location.hash.startsWith("#/search/")) {
      go(before);
    }
  }

  async function begin() {
    document.getElementById("search").hidden = false;
    startView.dataset.title = document.title;
    for (const link of document.querySelectorAll("a[data-system]")) {
      link.href = Catalog.systemLink(link.dataset.system);
    }
    box.addEventListener("input", typed);
    box.addEventListener("keydown", onBoxKey);
    clear.addEventListener("click", () => {
      box.value = "";
      go(before);
      box.focus();
    });
    box.addEventListener("focus", () => { needWords().catch(() => {}); });
    document.addEventListener("keydown", onPageKey);
    found.addEventListener("click", tellAddress, { capture: true });
    window.addEventListener("hashchange", render);
    if (location.hash.startsWith("#/")) render();
    const start = await load("start");
    const intro = document.getElementById("intro") || startView.querySelector("#intro");
    intro.replaceChildren(...views.intro(start));
    intro.hidden = false;
    for (const row of startView.querySelectorAll("tr[data-version]")) linkHistory(row, start);
  }

  /* The counts of a version's changes lead to the changes. */
  function linkHistory(row, start) {
    const number = Number(row.dataset.version);
    if (!number) return;
    for (const cell of [...row.cells].slice(2)) {
      const link = el("a", { href: `#/history/${encodeURIComponent(start.versions[number].label)}` }, cell.textContent);
      cell.replaceChildren(link);
    }
  }

  begin().catch(failed);
})();
