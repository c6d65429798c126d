/* Print formats as a reader wants them: one argument a line, and what a version changed. */
"use strict";

Catalog.print = (() => {
  const { el } = Catalog;
  const MANY_NAMES = 4;

  /* The format on a line of its own, then one argument a line, with fields set off; long tables of
     names one entry a line. */
  function pieces(text) {
    return cutInLines(text).map(([line, indent]) => {
      const parts = line.split(/(REC->\w+|"(?:[^"\\]|\\.)*")/).map((piece) =>
        piece.startsWith("REC->") ? el("b", {}, piece)
          : piece.startsWith('"') ? el("span", { class: "string" }, piece) : piece);
      return [indent ? `\n${" ".repeat(indent)}` : "", parts];
    });
  }

  function cutInLines(text) {
    const isTable = (text.match(/\{[^{}]*\}\s*,\s*(?=\{)/g) || []).length > MANY_NAMES;
    const lines = [];
    let from = 0;
    let depth = 0;
    let indent = 0;
    const cut = (to, next) => {
      const line = text.slice(from, to).trim();
      if (line) lines.push([line, indent]);
      from = to;
      indent = next;
    };
    for (const match of text.matchAll(/"(?:[^"\\]|\\.)*"|[(){}[\],]/g)) {
      const sign = match[0];
      if (sign.startsWith('"')) continue;
      if (sign === "{" && isTable) cut(match.index, 8);
      if ("([{".includes(sign)) depth++;
      else if (sign !== ",") depth--;
      else if (depth <= 0) cut(match.index + 1, 4);
    }
    cut(text.length, 0);
    return lines;
  }

  /* The old text, with what the new one does not have marked: beginning and end in common stay plain. */
  function difference(old, now) {
    let from = 0;
    while (from < old.length && from < now.length && old[from] === now[from]) from++;
    let end = 0;
    while (end < old.length - from && end < now.length - from && old[old.length - 1 - end] === now[now.length - 1 - end]) end++;
    const middle = old.slice(from, old.length - end);
    return [old.slice(0, from), middle ? el("del", {}, middle) : "", old.slice(old.length - end)];
  }

  return { pieces, difference };
})();
