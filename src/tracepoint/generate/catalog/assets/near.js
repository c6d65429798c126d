/* Words that are nearly what was typed: letters missing, added, exchanged or wrong.

   The different words of the columns are collected once.  A typed word is compared with those only that
   share most of its letters, as bits of a number, so a key costs a few hundred comparisons.
*/
"use strict";

Catalog.makeNearWords = (() => {
  const SHORTEST = 4;
  const LONG = 8; // from here on two mistakes are forgiven, else one

  const mistakesOf = (word) => (word.length < SHORTEST ? 0 : word.length < LONG ? 1 : 2);

  /* A bit for each letter and digit; others share one. */
  function lettersOf(word) {
    let bits = 0;
    for (let i = 0; i < word.length; i++) {
      const code = word.charCodeAt(i);
      const bit = code >= 97 && code <= 122 ? code - 97 : code >= 48 && code <= 57 ? 26 + ((code - 48) % 5) : 31;
      bits |= 1 << bit;
    }
    return bits;
  }

  function hasMoreThan(most, bits) {
    let count = 0;
    for (let rest = bits; rest && count <= most; rest &= rest - 1) count++;
    return count > most;
  }

  /* How many letters to add, drop, replace or exchange with the next until `word` is the text, or its
     beginning: { whole, start }.  Numbers above `most` only mean "more". */
  function distance(word, text, most) {
    const width = Math.min(text.length, word.length + most);
    let older = [];
    let old = Array.from({ length: width + 1 }, (_, i) => i);
    for (let i = 1; i <= word.length; i++) {
      const now = [i];
      let best = i;
      for (let j = 1; j <= width; j++) {
        const isSame = word.charCodeAt(i - 1) === text.charCodeAt(j - 1);
        let steps = Math.min(old[j] + 1, now[j - 1] + 1, old[j - 1] + (isSame ? 0 : 1));
        const isExchanged = i > 1 && j > 1 && word.charCodeAt(i - 1) === text.charCodeAt(j - 2)
          && word.charCodeAt(i - 2) === text.charCodeAt(j - 1);
        if (isExchanged) steps = Math.min(steps, older[j - 2] + 1);
        now.push(steps);
        if (steps < best) best = steps;
      }
      if (best > most) return { whole: most + 1, start: most + 1 };
      older = old;
      old = now;
    }
    return { whole: width === text.length ? old[width] : most + 1, start: Math.min(...old) };
  }

  /* The lines of a text and the parts of their names, but not numbers and short ones. */
  function wordsIn(text) {
    const parts = text.split(/[^a-z0-9]+/);
    const lines = text.includes("_") ? text.split("\n").filter((line) => !line.includes(" ")) : [];
    return new Set([...lines, ...parts].filter((part) => part.length >= SHORTEST - 1 && !/^\d/.test(part)));
  }

  /* columns: { name: { values } }.  Return find(word, column): [text number, mistakes, is whole] of near values. */
  return function makeNearWords(columns) {
    const books = new Map(Object.entries(columns).map(([name, column]) => {
      const places = new Map();
      column.values.forEach((text, number) => {
        for (const word of wordsIn(text)) {
          const known = places.get(word);
          if (known) known.push(number);
          else places.set(word, [number]);
        }
      });
      return [name, [...places].map(([word, numbers]) => ({ word, numbers, letters: lettersOf(word) }))];
    }));

    function find(word, column) {
      const most = mistakesOf(word);
      const letters = lettersOf(word);
      const near = [];
      for (const entry of most ? books.get(column) || [] : []) {
        if (entry.word.length < word.length - most || hasMoreThan(most, letters & ~entry.letters)) continue;
        const { whole, start } = distance(word, entry.word, most);
        if (Math.min(whole, start) > most) continue;
        /* A short word with a mistake in its first letter is another word. */
        if (word.length < 6 && entry.word[0] !== word[0] && entry.word[1] !== word[0]) continue;
        near.push({ numbers: entry.numbers, mistakes: Math.min(whole, start), isWhole: whole <= start, word: entry.word });
      }
      return near;
    }
    return { find, mistakesOf, distance };
  };
})();
