/* The search: what a query means, which tracepoints match, and which of them come first.

   Words are looked for in columns. A column is { values, of }: different texts, in lower case, and
   for every event the number of its text. A text of several words has one on each line. So a word
   is compared with every different text once, and with no event at all.
*/
"use strict";

Catalog.makeSearcher = (() => {
  /* What a match is worth by column, and how good it is: inside, start of a part, start, whole. */
  const WORTH = {
    names: [0, 300, 500, 700, 1000],
    systems: [0, 80, 120, 350, 450],
    fields: [0, 60, 140, 180, 240],
    callers: [0, 50, 110, 170, 230],
    classes: [0, 50, 100, 150, 200],
    prose: [0, 10, 60, 90, 110],
    files: [0, 15, 50, 60, 90],
  };
  const FILTERS = new Map([
    ["field", "fields"], ["system", "systems"], ["file", "files"], ["caller", "callers"],
    ["func", "callers"], ["class", "classes"], ["name", "names"],
  ]);
  const FLAGS = new Map([
    ["unused", 8], ["syscall", 1], ["bare", 4], ["norecord", 16],
  ]);
  const HISTORY = ["since", "until", "in", "changed", "layout", "proto", "print", "breaks"];
  const CHANGE_BITS = new Map([["changed", 7], ["layout", 1], ["proto", 2], ["print", 4], ["breaks", 8]]);
  const isWordChar = (code) =>
    (code >= 97 && code <= 122) || (code >= 48 && code <= 57) || code > 127;

  /* `a -b field:x "two words"` as terms: { not, key, text }. */
  function parseQuery(query) {
    const terms = [];
    for (const token of query.toLowerCase().match(/-?(?:[a-z]+:)?"[^"]*"?|\S+/g) || []) {
      const not = token.length > 1 && token.startsWith("-");
      const bare = not ? token.slice(1) : token;
      const parts = /^([a-z]+):(.*)$/s.exec(bare);
      const isKnown = parts && (FILTERS.has(parts[1]) || FLAGS.has(parts[1]) || HISTORY.includes(parts[1]));
      const key = isKnown ? parts[1] : "";
      const rest = isKnown ? parts[2] : bare;
      const text = rest.replaceAll('"', "");
      if (FLAGS.has(key)) {
        terms.push({ not, key, text: "" });
        /* `unused:xfs` is two terms. */
        if (text) terms.push({ not: false, key: "", text });
      } else if (text || CHANGE_BITS.has(key)) {
        terms.push({ not, key, text, isExact: rest.includes('"') });
      }
    }
    return terms;
  }

  /* How well a text has a word: 4 whole line, 3 start of a line, 2 start of a part, 1 inside, 0 not. */
  function quality(text, word) {
    let best = 0;
    for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + 1)) {
      const before = at === 0 ? 10 : text.charCodeAt(at - 1);
      let now = 1;
      if (before === 10) {
        const end = at + word.length;
        now = end === text.length || text.charCodeAt(end) === 10 ? 4 : 3;
      } else if (!isWordChar(before)) {
        now = 2;
      }
      if (now > best) best = now;
      if (best === 4) break;
    }
    return best;
  }

  /* What a near match is worth, whole or only the start: below all matches in its column, above prose. */
  const NEAR = { names: [250, 200], systems: [70, 50], fields: [55, 40], classes: [45, 35], prose: [9, 6] };

  /* A path begins at a folder: `mm/` is not in `drivers/comm/`. */
  const pathQuality = (text, word) => {
    const found = quality(text, word);
    return found >= 3 || (found && text.includes(`/${word}`)) ? found : 0;
  };

  function qualities(column, word, measure) {
    const found = new Uint8Array(column.values.length);
    for (let i = 0; i < found.length; i++) found[i] = measure(column.values[i], word);
    return found;
  }

  /* data: { count, columns, seen, flags, changes, labels, syscall } as app.js puts it together. */
  function makeSearcher(data) {
    const scores = new Float64Array(data.count);
    const reasons = new Uint8Array(data.count);
    const columnNames = Object.keys(WORTH);

    function versionNumber(text) {
      const exact = data.labels.indexOf(text);
      return exact >= 0 ? exact : data.labels.findIndex((label) => label.startsWith(text));
    }

    /* Return for every event whether, and how well, a term is true of it. */
    function judge(term, worth, why) {
      if (FLAGS.has(term.key)) {
        const bit = FLAGS.get(term.key);
        for (let i = 0; i < data.count; i++) worth[i] = data.flags[i] & bit ? 1 : 0;
      } else if (HISTORY.includes(term.key)) {
        judgeHistory(term, worth);
      } else {
        const asked = FILTERS.get(term.key);
        for (const name of asked ? [asked] : columnNames) {
          const isBegun = judgeColumn(name, term.text, worth, why, asked);
          if (isBegun && name in NEAR && name !== "prose") term.isKnown = true;
        }
        if (!asked && term.text.includes(":")) judgeFullName(term.text, worth);
      }
    }

    /* Return whether the word begins a part of some text of the column. */
    function judgeColumn(name, word, worth, why, isFilter) {
      const column = data.columns[name];
      if (!column) return false;
      const measure = name === "files" && isFilter ? pathQuality : quality;
      const found = qualities(column, word, measure);
      const values = WORTH[name];
      const number = columnNames.indexOf(name);
      for (let i = 0; i < data.count; i++) {
        const value = values[found[column.of[i]]];
        if (name === "systems" && worth[i] && value && !isFilter) {
          worth[i] += Math.round(value / 3); // of irq_… in two systems, the one called irq
        } else if (value > worth[i]) {
          worth[i] = value;
          why[i] = number;
        }
      }
      return found.some((one) => one >= 2);
    }

    let nearWords = null;
    let nearColumns = 0;

    /* Add what nearly has a word, unless it begins a part of some name, system or field. */
    function judgeNear(term, worth, why) {
      const asked = FILTERS.get(term.key);
      if (term.not || term.isExact || term.isKnown || (term.key && !asked) || /[^a-z0-9_]/.test(term.text)) return;
      const names = (asked ? [asked] : Object.keys(NEAR)).filter((name) => NEAR[name] && data.columns[name]);
      if (nearColumns !== Object.keys(data.columns).length) {
        nearColumns = Object.keys(data.columns).length;
        nearWords = Catalog.makeNearWords(Object.fromEntries(
          Object.keys(NEAR).filter((name) => data.columns[name]).map((name) => [name, data.columns[name]])));
      }
      if (!nearWords.mistakesOf(term.text)) return;
      for (const name of names) addNear(name, nearWords.find(term.text, name), worth, why);
    }

    function addNear(name, near, worth, why) {
      const column = data.columns[name];
      const values = new Uint16Array(column.values.length);
      for (const { numbers, mistakes, isWhole } of near) {
        const value = NEAR[name][isWhole ? 0 : 1] - (mistakes > 1 ? (name === "prose" ? 1 : 20) : 0);
        for (const number of numbers) if (value > values[number]) values[number] = value;
      }
      const number = columnNames.indexOf(name);
      for (let i = 0; i < data.count; i++) {
        const value = values[column.of[i]];
        if (value > worth[i]) {
          worth[i] = value;
          why[i] = number;
        }
      }
    }

    /* `sched:sched_sw` is the beginning of a full name, or of both halves. */
    function judgeFullName(text, worth) {
      const colon = text.indexOf(":");
      const system = qualities(data.columns.systems, text.slice(0, colon), quality);
      const name = text.slice(colon + 1);
      const names = name ? qualities(data.columns.names, name, quality) : null;
      for (let i = 0; i < data.count; i++) {
        const first = system[data.columns.systems.of[i]];
        const second = names ? names[data.columns.names.of[i]] : 3;
        if (first >= 3 && second) worth[i] = Math.max(worth[i], WORTH.names[second] + (first === 4 ? 200 : 0));
      }
    }

    function judgeHistory(term, worth) {
      const number = versionNumber(term.text);
      if (CHANGE_BITS.has(term.key)) {
        const bits = CHANGE_BITS.get(term.key);
        for (const [event, version, value] of data.changes) {
          if ((value & bits) && (!term.text || version === number)) worth[event] = 1;
        }
        return;
      }
      if (number < 0) return;
      for (let i = 0; i < data.count; i++) {
        const seen = data.seen[i];
        const first = 31 - Math.clz32(seen & -seen);
        const last = 31 - Math.clz32(seen);
        if (term.key === "in") worth[i] = (seen >> number) & 1;
        else if (term.key === "since") worth[i] = first >= number ? 1 : 0;
        else worth[i] = last <= number ? 1 : 0;
      }
    }

    /* Return { ids, total, terms, reasons } for a query: the best `limit` events, best first. */
    function search(query, limit) {
      const terms = parseQuery(query);
      scores.fill(terms.length ? 1 : 0);
      reasons.fill(255);
      const worth = new Float64Array(data.count);
      const why = new Uint8Array(data.count);
      for (const term of terms) {
        worth.fill(0);
        why.fill(255);
        judge(term, worth, why);
        judgeNear(term, worth, why);
        for (let i = 0; i < data.count; i++) {
          if (!scores[i]) continue;
          if ((worth[i] > 0) === term.not) scores[i] = 0;
          else if (!term.not) scores[i] += worth[i];
          /* The reason worth telling is one that the name does not show. */
          if (why[i] > 1 && why[i] !== 255) reasons[i] = why[i];
        }
      }
      return { ...ranked(limit), terms, reasonOf: (id) => columnNames[reasons[id]] || "" };
    }

    /* Among equals: shorter names first, custom and bare ones after others, system calls last. */
    function rankOf(id) {
      const name = data.columns.names.values[data.columns.names.of[id]];
      const isEntered = data.flags[id] & 1 && name.startsWith("sys_enter_"); // as long as sys_exit_
      const length = Math.min(name.length - (isEntered ? 1 : 0), 90);
      return length + (data.flags[id] & 6 ? 30 : 0) + (data.flags[id] & 1 ? 128 : 0);
    }

    /* Sort by score, then by rank, then in the catalog's order, as one number each. */
    function ranked(limit) {
      const keys = new Float64Array(data.count);
      let total = 0;
      for (let i = 0; i < data.count; i++) {
        if (!scores[i]) continue;
        const score = Math.min(scores[i], 65535);
        keys[total++] = ((65535 - score) * 256 + rankOf(i)) * 1048576 + i;
      }
      const sorted = keys.subarray(0, total).sort();
      const ids = [];
      for (let i = 0; i < Math.min(limit, total); i++) ids.push(sorted[i] % 1048576);
      return { ids, total };
    }

    /* The names nearest to a word that matches nothing, by the pairs of letters that they share. */
    function nearest(word, limit) {
      const pairs = (text) => new Set(Array.from({ length: Math.max(text.length - 1, 0) }, (_, i) => text.slice(i, i + 2)));
      const wanted = pairs(word);
      const close = [];
      const { values, of } = data.columns.names;
      for (let i = 0; i < data.count; i++) {
        const own = pairs(values[of[i]]);
        let shared = 0;
        for (const pair of wanted) if (own.has(pair)) shared++;
        const likeness = (2 * shared) / (wanted.size + own.size || 1);
        if (likeness > 0.36) close.push([likeness, i]);
      }
      return close.sort((a, b) => b[0] - a[0] || a[1] - b[1]).slice(0, limit).map((pair) => pair[1]);
    }

    return { search, nearest };
  }

  makeSearcher.parseQuery = parseQuery;
  makeSearcher.quality = quality;
  return makeSearcher;
})();
