/* What lies where in a record: a map of its bytes, the table of fields, the text of the format file. */
"use strict";

Catalog.record = (() => {
  const { el } = Catalog;
  const ROW = 8;
  const MANY_ROWS = 3;
  const isDynamic = (field) => /^__(data|rel)_loc /.test(field.type);

  /* Make objects of the fields' rows; the first `nCommon` are the common ones. */
  function makeFields(common, own) {
    return [...common, ...own].map(([name, type, offset, size, signed], index) => ({
      name, type, offset, size, signed: Boolean(signed), isCommon: index < common.length,
    }));
  }

  /* The end of the fixed part: `size` is 0 where nobody said it. */
  const endOf = (fields, size) => Math.max(size, 0, ...fields.map((f) => f.offset + f.size));

  /* Return fields and the gaps between them in the order of their bytes; what overlaps is left out. */
  function inOrder(fields, size) {
    const items = [];
    const overlapping = [];
    let at = 0;
    for (const field of [...fields].sort((a, b) => a.offset - b.offset)) {
      if (field.offset < at || field.size <= 0) {
        if (field.size > 0) overlapping.push(field);
        continue;
      }
      if (field.offset > at) items.push({ hole: true, offset: at, size: field.offset - at });
      items.push(field);
      at = field.offset + field.size;
    }
    const end = endOf(fields, size);
    if (end > at) items.push({ hole: true, tail: true, offset: at, size: end - at });
    return { items, overlapping, end };
  }

  /* Cut one item at the ends of rows: pieces { from, length, rows }, whole rows together. */
  function pieces(item) {
    const found = [];
    let at = item.offset;
    const end = item.offset + item.size;
    while (at < end) {
      const column = at % ROW;
      if (column === 0 && end - at >= ROW) {
        const rows = Math.floor((end - at) / ROW);
        found.push({ from: at, length: rows * ROW, rows });
        at += rows * ROW;
      } else {
        const length = Math.min(ROW - column, end - at);
        found.push({ from: at, length, rows: 1 });
        at += length;
      }
    }
    return found;
  }

  const bytes = (count) => `${count.toLocaleString("en")} byte${count === 1 ? "" : "s"}`;

  function sayItem(item) {
    if (item.tail) return `${bytes(item.size)} of padding at the end`;
    if (item.hole) return `hole of ${bytes(item.size)} at ${item.offset}`;
    return `${item.name}: ${item.type}, offset ${item.offset}, ${bytes(item.size)}`;
  }

  /* A grid of eight bytes a row. The table beside it says the same, so it is one image for readers. */
  function byteMap(fields, size) {
    const { items, overlapping, end } = inOrder(fields, size);
    const label = `Map of ${bytes(end)}: ${items.filter((i) => !i.isCommon).map(sayItem).join("; ")}`;
    const map = el("div", { class: "bytes", role: "img", "aria-label": label });
    let row = 1;
    let odd = false;
    for (const item of items) {
      if (!item.hole) odd = !odd;
      pieces(item).forEach((piece, index) => {
        const column = piece.from % ROW;
        const tall = Math.min(piece.rows, MANY_ROWS);
        if (column === 0) map.append(gutter(row, piece.from));
        map.append(cell(item, piece, { row, column, tall, odd, isFirst: index === 0 }));
        if (column + piece.length >= ROW) row += tall;
      });
    }
    const note = overlapping.length
      ? el("p", { class: "note" }, `Shares its bytes with others: ${overlapping.map((f) => f.name).join(", ")}.`)
      : "";
    return el("div", { class: "bytemap" }, map, note);
  }

  function gutter(row, offset) {
    const element = el("span", { class: "offset" }, String(offset));
    element.style.gridRow = String(row);
    return element;
  }

  /* `common_` says nothing in a cell that is grey. */
  const shortName = (item) => item.isCommon ? item.name.replace(/^common_/, "") : item.name;

  function cell(item, piece, place) {
    const kind = item.hole ? "hole" : item.isCommon ? "common" : isDynamic(item) ? "dynamic" : "own";
    const shown = item.hole ? (piece.length > 2 ? bytes(item.size) : "") : place.isFirst ? shortName(item) : "…";
    const element = el("span", {
      class: `cell ${kind}${place.odd ? " odd" : ""}`,
      title: sayItem(item),
      "data-field": item.hole ? null : item.name,
    }, shown);
    if (!item.hole && !item.isCommon && place.isFirst && piece.length > 2) element.append(el("i", {}, item.type));
    if (place.tall < piece.rows) element.append(el("i", { class: "long" }, bytes(item.size)));
    const width = Math.min(piece.length, ROW);
    element.style.gridColumn = `${place.column + 2} / span ${width}`;
    element.style.gridRow = `${place.row} / span ${place.tall}`;
    element.style.setProperty("--bytes", String(width));
    return element;
  }

  /* Rows that differ from the version before are marked; `before` is null where there is none. */
  function fieldTable(fields, before) {
    const old = new Map((before || []).map((field) => [field.name, field]));
    const common = fields.filter((field) => field.isCommon);
    const row = (field) => {
      const changes = before ? changesOf(old.get(field.name), field) : [];
      return el("tr", { "data-field": field.name },
        el("th", { scope: "row" }, field.name, changes.map((text) => [" ", el("span", { class: "badge change" }, text)])),
        el("td", { class: "type" }, field.type),
        el("td", { class: "number" }, String(field.offset)),
        el("td", { class: "number" }, String(field.size)),
        el("td", {}, field.signed ? "yes" : "no"));
    };
    const head = ["field", "type", "offset", "size", "signed"].map((name) => el("th", { scope: "col" }, name));
    return el("div", { class: "wide" }, el("table", { class: "fields" },
      el("thead", {}, el("tr", {}, head)),
      el("tbody", {},
        el("tr", { class: "common" },
          el("td", { colspan: "2" }, common.map((field) => field.name).join(", ")),
          el("td", { class: "number" }, "0"),
          el("td", { class: "number" }, String(endOf(common, 0))),
          el("td", {}, "")),
        fields.filter((field) => !field.isCommon).map(row))));
  }

  /* The sign of a text says nothing. */
  const isText = (field) => /\bchar ?\[/.test(field.type);

  function changesOf(old, field) {
    if (!old) return ["new"];
    const changes = [];
    if (old.offset !== field.offset) changes.push(`was at ${old.offset}`);
    if (old.size !== field.size) changes.push(`was ${bytes(old.size)}`);
    else if (old.type !== field.type) changes.push(`was ${old.type}`);
    if (old.signed !== field.signed && !isText(field)) changes.push(old.signed ? "was signed" : "was unsigned");
    return changes;
  }

  /* The text that tracefs shows, as tracepoint.layout.format.write_format makes it. */
  function formatText(name, fields, print) {
    const line = (field) => {
      const bracket = field.type.indexOf("[");
      const isInside = bracket >= 0 && !field.type.startsWith("__data_loc");
      const declaration = isInside
        ? `${field.type.slice(0, bracket)} ${field.name}${field.type.slice(bracket)}`
        : `${field.type} ${field.name}`;
      return `\tfield:${declaration};\toffset:${field.offset};\tsize:${field.size};\tsigned:${Number(field.signed)};\n`;
    };
    const common = fields.filter((field) => field.isCommon).map(line).join("");
    const own = fields.filter((field) => !field.isCommon).map(line).join("");
    return `name: ${name}\nID: 0\nformat:\n${common}\n${own}\nprint fmt: ${print}\n`;
  }

  /* Light up a field in the map and in the table together. */
  function linkHover(container) {
    const mark = (event, on) => {
      const name = event.target.closest && event.target.closest("[data-field]")?.dataset.field;
      if (name === undefined) return;
      for (const element of container.querySelectorAll("[data-field]")) {
        if (element.dataset.field === name) element.classList.toggle("lit", on);
      }
    };
    container.addEventListener("mouseover", (event) => mark(event, true));
    container.addEventListener("mouseout", (event) => mark(event, false));
  }

  return { makeFields, endOf, inOrder, pieces, byteMap, fieldTable, formatText, linkHover, isDynamic, bytes };
})();
