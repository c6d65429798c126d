/* The page of one tracepoint. */
"use strict";

Catalog.eventPage = (() => {
  const { el, plural, copyButton, isPlain, eventLink, systemLink, searchLink } = Catalog;
  const { makeFields, endOf, inOrder, byteMap, fieldTable, formatText, linkHover, isDynamic, bytes } = Catalog.record;
  const { print } = Catalog;
  const FEW_SITES = 8;
  const FIRING = new Set(["call", "reference"]);

  /* Where the web shows a line of the version on the page; null without such an address. */
  let addressOf = null;

  function makeAddress({ source, versions }, at) {
    if (!source) return null;
    const values = { version: versions[at].full || versions[at].label };
    return (path, line) => source.replace(/\{(version|file|line)\}/g, (_, name) =>
      name === "file" ? encodeURI(path) : encodeURIComponent(name === "line" ? line || 1 : values[name]));
  }

  /* Return the page of an event as version number `at` has it. */
  function eventPage(event, at, start) {
    const seen = event.seen[at];
    addressOf = makeAddress(start, at);
    const before = previous(event, at);
    const page = el("article", { class: "event" },
      head(event, at, start),
      prose(event.docs[seen.doc]),
      el("div", { class: "columns" },
        el("div", { class: "body" },
          recordPart(event, seen, before, start),
          sitesPart(seen),
          printPart(event, seen, before),
          protoPart(event, seen, before),
          commands(event, seen, start),
          othersPart(event)),
        el("aside", {},
          facts(event, seen),
          historyPart(event, start))));
    linkHover(page);
    return page;
  }

  const previous = (event, at) => at > 0 ? event.seen[at - 1] : null;

  function section(title, ...children) {
    return el("section", {}, el("h2", {}, title), children);
  }

  /* Title, badges, and the versions to look at. */
  function head(event, at, start) {
    const fullName = `${event.system}:${event.name}`;
    const seen = event.seen[at];
    const present = event.seen.map((one, number) => one ? number : -1).filter((number) => number >= 0);
    const newest = present[present.length - 1];
    const badges = [];
    if (seen.kind !== "event") badges.push(el("span", { class: "badge" }, KINDS.get(seen.kind) || seen.kind));
    if (seen.unused) badges.push(el("span", { class: "badge warn" }, "no caller in the tree"));
    if (present[0] > 0) badges.push(el("span", { class: "badge new" }, `new in ${start.versions[present[0]].label}`));
    if (newest < start.versions.length - 1) {
      badges.push(el("span", { class: "badge gone" }, `gone in ${start.versions[newest + 1].label}`));
    }
    const versions = start.versions.length > 1
      ? el("nav", { class: "versions-of", "aria-label": "Versions" }, start.versions.map((version, number) =>
        event.seen[number]
          ? el("a", {
            href: eventLink(fullName, number === newest ? "" : version.label),
            "aria-current": number === at ? "true" : null,
          }, version.label)
          : el("span", { class: "absent", title: `not in ${version.label}` }, version.label)))
      : "";
    return el("header", { class: "title" },
      el("p", { class: "crumb" }, el("a", { href: systemLink(event.system) }, event.system || "(no system)")),
      el("div", { class: "headline" }, el("h1", { tabindex: "-1" }, event.name), versions),
      badges.length ? el("p", { class: "badges" }, badges) : "");
  }

  const KINDS = new Map([
    ["syscall", "made of a system call"],
    ["custom", "at the tracepoint of another event"],
    ["bare", "tracepoint without a trace event"],
  ]);

  /* A comment: paragraphs, kernel-doc's `@name: text` as a list; lines that begin further right stay lines. */
  function prose(text) {
    if (!text) return "";
    const parts = [];
    for (const paragraph of text.split(/\n[ \t]*\n/)) {
      const params = [...paragraph.matchAll(/^@([\w.]+)[ \t]*:[ \t]*([^]*?)(?=\n@[\w.]+[ \t]*:|$(?![^]))/gm)];
      const first = paragraph.search(/^@[\w.]+[ \t]*:/m);
      const words = first < 0 ? paragraph : paragraph.slice(0, first);
      if (words.trim()) {
        const keepsLines = /^(?:\s{2,}|\t|[-*] |\d+[.)] |"[^"\n]*":)/m.test(words);
        parts.push(el("p", { class: keepsLines ? "lines" : null },
          keepsLines ? words.trim() : words.trim().replace(/\s*\n\s*/g, " ")));
      }
      if (params.length) {
        parts.push(el("dl", { class: "params" }, params.map((found) =>
          [el("dt", {}, found[1]), el("dd", {}, found[2].replace(/\s+/g, " ").trim())])));
      }
    }
    return el("div", { class: "prose" }, parts);
  }

  function recordPart(event, seen, before, start) {
    if (seen.record === undefined) {
      return seen.problem ? section("Record", el("p", { class: "note" }, `It cannot be laid out: ${seen.problem}.`)) : "";
    }
    const [own, size] = event.records[seen.record];
    const fields = makeFields(start.common, own);
    const isNew = before && before.record !== undefined && before.record !== seen.record;
    const old = isNew ? makeFields(start.common, event.records[before.record][0]) : null;
    const gone = (old || []).filter((field) => !fields.some((other) => other.name === field.name));
    return section("Record",
      el("p", { class: "sum" }, sumUp(fields, size)),
      byteMap(fields, size),
      fieldTable(fields, old),
      gone.length ? el("p", { class: "note" }, `No longer there: ${gone.map((f) => `${f.name} (${f.type})`).join(", ")}.`) : "");
  }

  function sumUp(fields, size) {
    const { items } = inOrder(fields, size);
    const holes = items.filter((item) => item.hole && !item.tail);
    const tail = items.find((item) => item.tail);
    const parts = [`${bytes(endOf(fields, size))}`];
    parts.push(holes.length
      ? `${plural(holes.length, "hole")} (${holes.map((h) => `${bytes(h.size)} at ${h.offset}`).join(", ")})`
      : "no holes");
    if (tail) parts.push(`${bytes(tail.size)} of padding at the end`);
    const dynamic = fields.filter(isDynamic);
    if (dynamic.length) parts.push(`then the data of ${dynamic.map((f) => f.name).join(", ")}`);
    return `${parts.join(", ")}.`;
  }

  function printPart(event, seen, before) {
    if (seen.print === undefined) return "";
    const [text, plain = text] = event.prints[seen.print];
    if (!text) return "";
    const isNew = before && before.print !== undefined && before.print !== seen.print;
    return section("Print format",
      el("pre", { class: "code long" }, print.pieces(plain)),
      plain === text ? "" : el("p", { class: "note" }, "Constants are worked out here; the format file has them in full."),
      isNew ? el("details", {}, el("summary", {}, "As it was in the version before"),
        el("pre", { class: "code" }, print.difference(...asTheyDiffer(event.prints[before.print], [text, plain])))) : "");
  }

  /* Two formats with constants worked out, or in full when only that shows the difference. */
  function asTheyDiffer([old, oldPlain = old], [now, nowPlain]) {
    return oldPlain === nowPlain ? [old, now] : [oldPlain, nowPlain];
  }

  function protoPart(event, seen, before) {
    if (seen.proto === undefined) return "";
    const text = `trace_${event.name}(${event.protos[seen.proto]})`;
    const old = before && before.proto !== undefined && before.proto !== seen.proto ? event.protos[before.proto] : null;
    return section("Prototype",
      el("pre", { class: "code" }, text),
      old === null ? "" : el("p", { class: "note" }, "In the version before: ", el("code", {}, `(${old})`)));
  }

  /* Where it is called; what only asks, registers or mentions is folded away. */
  function sitesPart(seen) {
    const sites = seen.sites || [];
    const calls = sites.filter((s) => FIRING.has(s[0]));
    const others = sites.filter((s) => !FIRING.has(s[0]));
    if (!sites.length && !seen.unused) return "";
    return section(calls.length ? `Called from ${plural(calls.length, "place")}` : "Called from",
      calls.length ? sitesList(calls) : el("p", { class: "note" }, "Nothing in the tree fires it."),
      others.length ? el("details", { class: "mentions" }, el("summary", {}, otherSites(others)), sitesList(others)) : "");
  }

  const KIND_WORDS = new Map([
    ["enabled", "asked whether enabled"], ["register", "probe registered"], ["unregister", "probe removed"],
    ["macro", "in a macro"],
  ]);

  /* "2 probes registered" would need a plural for each kind: the numbers come behind. */
  function otherSites(sites) {
    const counts = new Map();
    for (const [kind] of sites) counts.set(kind, (counts.get(kind) || 0) + 1);
    return `Also mentioned: ${[...counts].map(([kind, n]) => `${KIND_WORDS.get(kind) || kind} (${n})`).join(", ")}`;
  }

  function sitesList(sites) {
    const list = el("ol", { class: "sites" }, sites.slice(0, FEW_SITES).map(site));
    if (sites.length <= FEW_SITES) return list;
    const button = el("button", { type: "button", class: "wide-button" }, `Show all ${sites.length.toLocaleString("en")}`);
    button.addEventListener("click", () => {
      const more = sites.slice(FEW_SITES).map(site);
      list.append(...more);
      button.remove();
      more[0].tabIndex = -1;
      more[0].focus();
    });
    return [list, button];
  }

  function site([kind, path, name, text, via, line]) {
    return el("li", {},
      el("div", { class: "where" },
        el("a", { class: "function", href: searchLink(name ? `caller:${name}` : `file:${path}`) }, name ? `${name}()` : "(no function)"),
        kind === "call" ? "" : el("span", { class: "badge" }, kind),
        via ? el("span", { class: "badge" }, `through ${via}`) : "",
        place(path, line)),
      el("code", {}, text));
  }

  function othersPart(event) {
    if (!event.others) return "";
    return section("Other declarations of the name", event.others.map((other) => el("div", { class: "other" },
      el("p", { class: "path" }, other.line ? `${other.file}:${other.line}` : other.file),
      el("pre", { class: "code" }, other.proto ? `(${other.proto})\n` : "", other.fields.join("\n") || "no fields"),
      other.calls.length
        ? el("p", { class: "note" }, `Called from ${other.calls.map(([path, line, name]) => `${name || "?"}() ${path}:${line}`).join(", ")}`)
        : "")));
  }

  /* A path, which may be broken behind its slashes; a line number of 0 is none. */
  function place(path, line) {
    const text = line ? `${path}:${line}` : path;
    const parts = text.split(/(?<=\/)/).flatMap((part, i) => i ? [el("wbr"), part] : [part]);
    return addressOf ? el("a", { class: "path", href: addressOf(path, line) }, parts) : el("span", { class: "path" }, parts);
  }

  function facts(event, seen) {
    const rows = [["Declared in", place(seen.file, seen.line)]];
    if (seen.macro) rows.push(["By", el("code", {}, [...(seen.via || [])].reverse().concat(seen.macro).filter((m, i, all) => all.indexOf(m) === i).join(" → "))]);
    const half = /^sys_(enter|exit)_(.+)$/.exec(event.name);
    if (seen.kind === "syscall" && half) {
      const other = `sys_${half[1] === "enter" ? "exit" : "enter"}_${half[2]}`;
      rows.push(["Other half", el("a", { href: eventLink(`${event.system}:${other}`) }, other)]);
    }
    if (seen.class && seen.class !== event.name) {
      rows.push(["Class", el("a", { href: searchLink(`class:${seen.class}`) }, seen.class)]);
    }
    if (seen.condition) rows.push(["Only when", el("code", {}, seen.condition)]);
    if (seen.created) rows.push(["Created in", seen.created.map((path) => el("div", {}, place(path)))]);
    if (seen.exports) {
      rows.push(["Exported", seen.exports.map(([path, line, gpl]) =>
        el("div", {}, place(path, line), gpl ? " to GPL modules" : " to modules"))]);
    }
    return el("section", { class: "facts" }, el("h2", {}, "Declaration"),
      el("dl", {}, rows.map(([name, value]) => [el("dt", {}, name), el("dd", {}, value)])));
  }

  function historyPart(event, start) {
    const items = [];
    start.versions.forEach((version, number) => {
      if (!number) return;
      const here = [];
      if (event.seen[number] && !event.seen[number - 1]) here.push(el("p", {}, "Added."));
      if (!event.seen[number] && event.seen[number - 1]) here.push(el("p", {}, "Removed: enabling it fails."));
      /* Fields of which the same is to be said share a line. */
      const sentences = new Map();
      for (const [at, , field, sentence, breaks, target] of event.changes || []) {
        if (at !== number) continue;
        const key = `${sentence}\n${breaks}\n${target}`;
        if (!sentences.has(key)) sentences.set(key, { fields: [], sentence, breaks, target });
        if (field) sentences.get(key).fields.push(field);
      }
      for (const change of sentences.values()) here.push(changeItem(change, start));
      if (here.length) items.push(el("li", {}, el("span", { class: "badge version" }, version.label), here));
    });
    const many = start.versions.length > 1;
    if (!many) return "";
    return section("History", items.length
      ? el("ol", { class: "history" }, items)
      : el("p", { class: "note" }, `The same ${known(event)} in all versions that have it.`));
  }

  /* Only what was there to compare can be called the same. */
  function known(event) {
    const seen = event.seen.filter((one) => one);
    const parts = [];
    if (seen.every((one) => one.record !== undefined)) parts.push("record and print format");
    if (seen.every((one) => one.proto !== undefined)) parts.push("prototype");
    return parts.join(", the same ") || "name";
  }

  /* What begins with the name of a function keeps it; two prototypes are set as code. */
  function asSentence(text) {
    const protos = /^(trace_\w+\(.*\)) is now (trace_\w+\(.*\))$/s.exec(text);
    if (protos) return [el("code", {}, protos[1]), " is now ", el("code", {}, protos[2])];
    return text.charAt(0).toUpperCase() + text.slice(1);
  }

  function changeItem({ fields, sentence, breaks, target }, start) {
    return el("p", {},
      fields.map((field, i) => [i ? ", " : "", el("code", {}, field)]), fields.length ? ": " : "",
      fields.length ? sentence : asSentence(sentence), ".",
      target ? [" ", el("a", { href: eventLink(target) }, target)] : "",
      breaks.length ? el("span", { class: "breaks" }, `breaks ${breaks.map((n) => start.readers[n]).join(", ")}`) : "");
  }

  /* Lines to copy; names that a shell would read as something else get none. */
  function commands(event, seen, start) {
    const { system, name } = event;
    if (!isPlain(name) || !isPlain(system)) {
      const why = system ? "Its name would have to be quoted in a shell" : "Its system is not known";
      return section("Use it", el("p", { class: "note" }, `${why}: no commands are offered.`), formatPart(event, seen, start));
    }
    const lines = seen.kind === "bare" ? bareCommands(name) : eventCommands(event, seen);
    return section("Use it", lines.map(([what, text]) => el("div", { class: "command" },
      el("div", { class: "what" }, what, copyButton(text, `the line for ${what}`)),
      el("pre", { class: "code" }, text))), formatPart(event, seen, start));
  }

  function eventCommands(event, seen) {
    const { system, name } = event;
    const own = seen.record === undefined ? [] : event.records[seen.record][0];
    const isCall = seen.kind === "syscall";
    const shown = own.filter(([field, type]) => /^[A-Za-z_]\w*$/.test(field) && isSimple(type) && field !== "__syscall_nr").slice(0, 4);
    const values = shown.map(([field, type]) => isDynamicText(type) || (isCall && isPath(field, type)) ? `str(args->${field})` : `args->${field}`);
    const verbs = shown.map(([field, type, , , signed]) => `${field}=${verb(field, type, signed, isCall)}`);
    const body = shown.length
      ? `printf("%s ${verbs.join(" ")}\\n", comm, ${values.join(", ")});`
      : "@[comm] = count();";
    return [
      ["tracefs", `echo 1 > /sys/kernel/tracing/events/${system}/${name}/enable`],
      ["bpftrace", `bpftrace -e 'tracepoint:${system}:${name} { ${body} }'`],
      ["trace-cmd", `trace-cmd record -e ${system}:${name} sleep 10`],
      ["perf", `perf record -a -e ${system}:${name} -- sleep 10`],
    ];
  }

  function bareCommands(name) {
    return [
      ["bpftrace", `bpftrace -e 'rawtracepoint:${name} { @[comm] = count(); }'`],
      ["dynamic event (CONFIG_FPROBE_EVENTS)", `echo 't:${name} ${name}' >> /sys/kernel/tracing/dynamic_events`],
    ];
  }

  const isDynamicText = (type) => /^__(?:data|rel)_loc (?:unsigned |signed )?char ?\[/.test(type);
  /* To bpftrace a fixed array of char is text, of which str() is an error; one of unsigned char is numbers. */
  const isText = (type) => isDynamicText(type) || /^char ?\[/.test(type);
  /* What a program gave for a file is text; other `const char *` may be any bytes. */
  const isPath = (field, type) => /^const char \*$/.test(type) && /name|path/.test(field);
  const SIGNED = /^(?:int|long|short|(?:pid|ssize|off|loff|clockid|key_serial)_t)$/;

  /* All arguments of system calls are unsigned to the format file, whatever their types say. */
  function verb(field, type, signed, isCall) {
    if (isText(type) || (isCall && isPath(field, type))) return "%s";
    if (type.endsWith("*")) return "0x%lx";
    return signed || (isCall && SIGNED.test(type)) ? "%ld" : "%lu";
  }

  const isSimple = (type) => isText(type) || !/[[{]|^__|^struct /.test(type);

  function formatPart(event, seen, start) {
    if (seen.record === undefined) return "";
    const fields = makeFields(start.common, event.records[seen.record][0]);
    const text = formatText(event.name, fields, seen.print === undefined ? "" : event.prints[seen.print][0]);
    return el("details", { class: "command" },
      el("summary", {}, "The format file"),
      el("div", { class: "what" }, "Every kernel gives it another ID.", copyButton(text, "the format file")),
      el("pre", { class: "code scroll" }, text));
  }

  return eventPage;
})();
