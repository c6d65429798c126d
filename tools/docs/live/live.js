// The form of the live page.  Texts go into the page as text, never as markup.
const LIMIT_CHARS = 200_000;
const LIMIT_MS = 30_000;
const at = (name) => document.getElementById(`live-${name}`);
const [form, source, run, stop, abi, set, state, result] =
  ["form", "source", "run", "stop", "abi", "set", "status", "result"].map(at);

let worker = null;
let timer = 0;
let isRunning = false;

const make = (tag, text = "", className = "") => {
  const element = document.createElement(tag);
  element.textContent = text;
  if (className) element.className = className;
  return element;
};

// A text that can be wider than the page; focusable, so that the keyboard can scroll it.
const block = (text, label) => {
  const element = make("pre", text);
  element.tabIndex = 0;
  element.setAttribute("role", "region");
  element.setAttribute("aria-label", label);
  return element;
};

const table = (heads, rows, label) => {
  const whole = make("table");
  const head = whole.createTHead().insertRow();
  for (const text of heads) {
    const cell = make("th", text);
    cell.scope = "col";
    head.append(cell);
  }
  const body = whole.createTBody();
  for (const texts of rows) {
    const row = body.insertRow();
    for (const text of texts) row.insertCell().textContent = text;
  }
  const frame = make("div", "", "live-wide");
  frame.tabIndex = 0;
  frame.setAttribute("role", "region");
  frame.setAttribute("aria-label", label);
  frame.append(whole);
  return frame;
};

const shown = (value) =>
  value !== null && typeof value === "object" ? JSON.stringify(value) : typeof value === "string" ? `"${value}"` : String(value);

const bytes = (hex, offset, size) =>
  (hex.slice(2 * offset, 2 * (offset + size)).match(/../g) ?? []).join(" ");

const finding = (one) => {
  const item = make("li", "", `live-${one.severity === "error" ? "error" : "note"}`);
  const code = make(/^TP\d+$/.test(one.code) ? "a" : "span", one.code);
  if (code.tagName === "A") code.href = `reference/rules/${one.code}.html`;
  item.append(code, ` line ${one.line}: ${one.message}`);
  for (const text of one.help) item.append(make("div", text));
  return item;
};

const event = (one) => {
  const parts = [make("h2", one.event.replace(/^:/, ""))];
  if (!one.is_complete) parts.push(make("p", `Not simulated in full: ${one.reason}`, "live-error"));
  if (one.format) parts.push(make("h3", "Format"), block(one.format, `Format of ${one.event}`));
  if (one.inputs?.length) {
    const rows = one.inputs.map((i) => [i.expression, i.ctype, shown(i.values[0]), i.is_given ? "given" : "sample"]);
    parts.push(make("h3", "Inputs"), table(["input", "type", "value", "from"], rows, `Inputs of ${one.event}`));
  }
  for (const shot of one.shots ?? []) {
    const rows = shot.fields.map((f) => [f.offset, f.size, bytes(shot.record_hex, f.offset, f.size), f.name, f.value]);
    parts.push(make("h3", `Record, ${shot.record_hex.length / 2} bytes`));
    parts.push(table(["offset", "size", "bytes", "field", "value"], rows, `Record of ${one.event}`));
    parts.push(make("h3", "Trace line"), block(shot.line, `Trace line of ${one.event}`));
  }
  for (const note of one.notes ?? []) parts.push(make("p", note));
  return parts;
};

const show = ({ document: found, errors }) => {
  const parts = [];
  const lines = errors.trim();
  if (lines) parts.push(make("h2", found ? "Messages" : "Error"), block(lines, "Messages"));
  if (found) {
    parts.push(make("h2", `Findings: ${found.findings.length || "none"}`));
    const list = make("ul", "", "live-findings");
    list.append(...found.findings.map(finding));
    if (found.findings.length) parts.push(list);
    parts.push(...found.events.flatMap(event));
  }
  result.replaceChildren(...parts);
};

const settle = (text) => {
  clearTimeout(timer);
  isRunning = false;
  stop.disabled = true;
  run.disabled = false;
  state.textContent = text;
};

const fail = (text) => {
  end();
  result.replaceChildren(make("h2", "Error"), block(text, "Error"));
  settle("It did not run. The button tries again.");
};

const end = () => {
  worker?.terminate();
  worker = null;
};

const begin = () => {
  worker = new Worker(new URL("worker.js", import.meta.url), { type: "module" });
  worker.onerror = (error) =>
    fail(`Python cannot be loaded: ${error.message ?? "a file is missing, or the page was opened from a folder"}. ` +
      "Serve the site: python3 -m http.server -d build/docs/html");
  worker.onmessage = ({ data }) => {
    if (data.kind === "ready") {
      if (!isRunning) state.textContent = "Ready.";
    } else if (data.kind === "failed") {
      fail(data.text);
    } else {
      show(data.answer);
      settle(`Done after ${((performance.now() - since) / 1000).toFixed(1)} s.`);
    }
  };
};

let since = 0;
const simulate = () => {
  if (isRunning) return;
  if (source.value.length > LIMIT_CHARS) {
    result.replaceChildren(make("p", `The text has ${source.value.length} characters; this page takes ${LIMIT_CHARS}.`, "live-error"));
    return;
  }
  since = performance.now();
  isRunning = true;
  run.disabled = true;
  stop.disabled = false;
  state.textContent = worker ? "Simulating …" : "Loading Python …";
  if (!worker) begin();
  timer = setTimeout(() => fail(`Ended after ${LIMIT_MS / 1000} s.`), LIMIT_MS);
  const values = set.value.split(";").map((part) => part.trim()).filter(Boolean);
  worker.postMessage({ text: source.value, abi: abi.value, values });
};

form.addEventListener("submit", (submitted) => {
  submitted.preventDefault();
  simulate();
});
stop.addEventListener("click", () => fail("Stopped."));
source.addEventListener("keydown", (pressed) => {
  if (pressed.key === "Enter" && (pressed.ctrlKey || pressed.metaKey)) simulate();
});
simulate();
