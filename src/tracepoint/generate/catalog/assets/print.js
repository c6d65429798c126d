/* Print formats as a reader wants them: constants worked out, one argument a line.

   The kernel's own text has `( unsigned long)(((( gfp_t)(((((1UL))) << (10))|…`. Worked out is only
   what is a number whatever the machine does: literals, casts to integers, | ^ & << >> + - * and ~.
*/
"use strict";

Catalog.print = (() => {
  const { el } = Catalog;
  const MANY_NAMES = 4;
  const MAX_CONSTANT = 4000;
  const MAX_DEPTH = 60;
  const TOKEN = /\s*(?:(0[xX][0-9a-fA-F]+|\d+)([uUlL]*)|(<<|>>|[|^&+\-*~()])|([A-Za-z_]\w*))/y;
  const STRING = /"(?:[^"\\]|\\.)*"/g;
  /* Bits and whether unsigned, on a machine with 64 bits: `source.types` in the Python program. */
  const TYPES = new Map(Object.entries(Catalog.types));
  const LEVELS = [["|"], ["^"], ["&"], ["<<", ">>"], ["+", "-"], ["*"]];

  /* A value: what it is, how many bits, whether unsigned. */
  const wrap = (value, bits, unsigned) =>
    ({ value: unsigned ? BigInt.asUintN(bits, value) : BigInt.asIntN(bits, value), bits, unsigned });

  /* The value of a constant expression, or null when it is none. */
  function constant(text) {
    if (text.length > MAX_CONSTANT) return null;
    const tokens = [];
    TOKEN.lastIndex = 0;
    while (TOKEN.lastIndex < text.length) {
      const match = TOKEN.exec(text);
      if (!match) {
        if (!text.slice(tokens.at(-1)?.end || 0).trim()) break;
        return null;
      }
      tokens.push({ number: match[1], suffix: match[2], sign: match[3], word: match[4], end: TOKEN.lastIndex });
    }
    try {
      const state = { tokens, at: 0 };
      const found = binary(state, 0, 0);
      return state.at === tokens.length ? found : null;
    } catch (error) {
      if (error instanceof SyntaxError) return null;
      throw error;
    }
  }

  const stop = () => { throw new SyntaxError("no constant"); };
  const peek = (state) => state.tokens[state.at]?.sign;

  function binary(state, level, depth) {
    if (depth > MAX_DEPTH) stop();
    if (level === LEVELS.length) return unary(state, depth);
    let left = binary(state, level + 1, depth);
    while (LEVELS[level].includes(peek(state))) {
      const sign = state.tokens[state.at++].sign;
      left = combine(sign, left, binary(state, level + 1, depth));
    }
    return left;
  }

  function combine(sign, a, b) {
    if (sign === "<<" || sign === ">>") {
      if (b.value < 0n || b.value >= BigInt(a.bits)) stop();
      return wrap(sign === "<<" ? a.value << b.value : a.value >> b.value, a.bits, a.unsigned);
    }
    const bits = Math.max(a.bits, b.bits);
    const unsigned = (a.bits === bits && a.unsigned) || (b.bits === bits && b.unsigned);
    const [x, y] = [wrap(a.value, bits, unsigned).value, wrap(b.value, bits, unsigned).value];
    const value = { "|": () => x | y, "^": () => x ^ y, "&": () => x & y, "+": () => x + y, "-": () => x - y, "*": () => x * y }[sign]();
    return wrap(value, bits, unsigned);
  }

  function unary(state, depth) {
    if (depth > MAX_DEPTH) stop();
    const token = state.tokens[state.at++] || stop();
    if (token.number) return literal(token);
    if (token.sign === "~" || token.sign === "-") {
      const { value, bits, unsigned } = unary(state, depth + 1);
      return wrap(token.sign === "~" ? ~value : -value, bits, unsigned);
    }
    if (token.sign !== "(") stop();
    const words = [];
    while (state.tokens[state.at]?.word) words.push(state.tokens[state.at++].word);
    if (words.length) {
      const type = TYPES.get(words.filter((word) => word !== "__force").join(" ")) || stop();
      if (state.tokens[state.at++]?.sign !== ")") stop();
      return wrap(unary(state, depth + 1).value, ...type);
    }
    const inner = binary(state, 0, depth + 1);
    if (state.tokens[state.at++]?.sign !== ")") stop();
    return inner;
  }

  function literal({ number, suffix }) {
    const isHex = /^0x/i.test(number);
    if (/^0\d/.test(number)) stop(); // octal: rare, and easily misread
    const value = BigInt(number);
    const isUnsigned = /u/i.test(suffix);
    for (const bits of /l/i.test(suffix) ? [64] : [32, 64]) {
      if (!isUnsigned && value < 1n << BigInt(bits - 1)) return wrap(value, bits, false);
      if ((isUnsigned || isHex) && value < 1n << BigInt(bits)) return wrap(value, bits, true);
    }
    return stop();
  }

  const shown = ({ value }) => value < 10n ? String(value) : `0x${value.toString(16)}`;

  /* The text with constants worked out: whole groups in parentheses, and what a table names. */
  function folded(text) {
    const strings = [];
    const bare = text.replace(STRING, (string) => `"${" ".repeat(string.length - 2)}"`);
    const groups = [];
    for (const match of bare.matchAll(/[({})]/g)) {
      if ("({".includes(match[0])) {
        groups.push(match.index);
        continue;
      }
      const from = groups.pop();
      if (from === undefined) continue;
      if (match[0] === ")" && isGroup(bare, from)) strings.push([from, match.index + 1]);
      const comma = bare.indexOf(",", from);
      if (match[0] === "}" && comma > 0 && comma < match.index) strings.push([from + 1, comma]);
    }
    return replaced(text, strings);
  }

  /* Parentheses that hold a value: no function's arguments, no cast. */
  const isGroup = (bare, from) => !/\w\s*$/.test(bare.slice(Math.max(0, from - 40), from));

  /* Replace the outermost stretches that are constants and longer than their number. */
  function replaced(text, stretches) {
    const parts = [];
    let at = 0;
    for (const [from, to] of stretches.sort((a, b) => a[0] - b[0] || b[1] - a[1])) {
      if (from < at) continue;
      const part = text.slice(from, to);
      const found = /\d/.test(part) && /[(|<~]/.test(part) ? constant(part) : null;
      if (!found || found.value < 0n) continue;
      parts.push(text.slice(at, from), part.match(/^\s*/)[0], shown(found));
      at = to;
    }
    return parts.join("") + text.slice(at);
  }

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

  return { constant, folded, pieces, difference };
})();
