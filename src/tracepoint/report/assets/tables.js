/* Tables: sorted by a click on a head, all rows on demand. */
(() => {
  const compare = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true }));

  const valueOf = (row, at) => {
    const cell = row.cells[at];
    const text = cell.dataset.sort ?? cell.textContent;
    return text !== "" && !Number.isNaN(Number(text)) ? Number(text) : text;
  };

  function sort(table, head, at) {
    const body = table.tBodies[0];
    const order = head.getAttribute("aria-sort") === "descending" ? "ascending" : "descending";
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", order);
    const sign = order === "ascending" ? 1 : -1;
    const rows = [...body.rows].map((row) => [valueOf(row, at), row]).sort((a, b) => sign * compare(a[0], b[0]));
    const most = [...body.rows].filter((row) => !row.classList.contains("rest")).length;
    rows.forEach(([, row], place) => row.classList.toggle("rest", place >= most));
    body.append(...rows.map(([, row]) => row));
  }

  for (const table of document.querySelectorAll(".sortable")) {
    [...table.tHead.rows[0].cells].forEach((head, at) => {
      const button = Report.el("button", { type: "button", onclick: () => sort(table, head, at) }, head.textContent);
      head.replaceChildren(button);
    });
    const n = table.querySelectorAll(".rest").length;
    if (n) {
      const more = Report.el("button", { type: "button", class: "plain" }, `Show all ${Report.count(table.tBodies[0].rows.length)} rows`);
      more.addEventListener("click", () => { table.classList.add("all"); more.remove(); });
      table.parentElement.after(more);
    }
  }
})();
