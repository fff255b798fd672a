// The status page: asks /metrics once a second and draws it. Whatever came from there is set as text, never as HTML.
//
//   poll ─▶ Egret.parse ─▶ Egret.figures ─▶ history (five minutes) ─▶ draw: panels, tables
//
// No answer: figures become dashes, plots a gap. A page that says nothing new must not look as if it did.
"use strict";

(() => {
  const EVERY_MS = 1000;
  const ANSWER_WITHIN_MS = 3000;
  const SPAN_MS = 300000;
  const GAP_MS = 5000; // points further apart are not joined, unless the browser itself lets us ask less often
  const { count_text, bytes_text, whole_text, percent_text, seconds_text, latency_text, age_text, UNKNOWN } = Egret;

  const per_second = (value) => (value === null || value === undefined ? UNKNOWN : `${count_text(value)}/s`);
  const bytes_per_second = (value) => (value === null || value === undefined ? UNKNOWN : `${bytes_text(value)}/s`);
  const of_limit = (part, whole) => (part === null || !whole ? UNKNOWN : percent_text(part / whole));
  const seconds_of = (found) => (found ? found.seconds : null);

  // A panel: what its headline says, the lines of its plot (each with its figure), and figures without a line.
  const COMMAND_LINES = Egret.COMMANDS.map((command, at) => ({ name: command, line: "abcdef"[at], of: (f) => f[command], text: per_second }));
  const percent_scale = (value) => `${count_text(value * 100)}\u202f%`;
  const PROCESS = {
    title: "Process", headline: (f) => percent_text(f.cpu), unit: "of a CPU", scale: percent_scale,
    lines: [{ name: "CPU", line: "a", of: (f) => f.cpu, text: percent_text }],
    facts: [["memory", (f) => bytes_text(f.resident)], ["open files", (f) => whole_text(f.descriptors)]],
  };
  const HIT_RATIO = {
    title: "Hit ratio", headline: (f) => percent_text(f.hit_ratio), unit: "of keys", scale: percent_scale, most: () => 1, idle: "no gets",
    lines: [{ name: "hits", line: "a", of: (f) => f.hit_ratio, text: percent_text }],
    facts: [["found", (f) => per_second(f.hits)], ["missed", (f) => per_second(f.misses)]],
  };
  const PANELS = {
    proxy: [
      { title: "Requests", headline: (f) => count_text(f.requests), unit: "/s", scale: count_text, lines: COMMAND_LINES },
      {
        title: "Latency", headline: (f) => latency_text(f.p99), unit: "p99", scale: seconds_text, is_log: true, idle: "no requests",
        lines: [
          { name: "p50", line: "a", of: (f) => seconds_of(f.p50), text: (_, f) => latency_text(f.p50) },
          { name: "p99", line: "b", of: (f) => seconds_of(f.p99), text: (_, f) => latency_text(f.p99) },
        ],
        facts: [["p99.9", (f) => latency_text(f.p999)]],
      },
      { ...HIT_RATIO, facts: [...HIT_RATIO.facts, ["moved here", (f) => per_second(f.moved)]] },
      {
        title: "Traffic", headline: (f) => bytes_text(f.sent), unit: "/s out", scale: bytes_text,
        lines: [
          { name: "out", line: "a", of: (f) => f.sent, text: bytes_per_second },
          { name: "in", line: "b", of: (f) => f.received, text: bytes_per_second },
        ],
      },
      {
        title: "Connections", headline: (f) => whole_text(f.connections), unit: (f) => `of ${whole_text(f.max_connections)}`, scale: whole_text,
        lines: [{ name: "open", line: "a", of: (f) => f.connections, text: whole_text }],
        facts: [["accepted", (f) => per_second(f.accepted)], ["rejected", (f) => per_second(f.rejected)], ["idle, closed", (f) => per_second(f.idle_kicks)]],
      },
      {
        title: "Errors", headline: (f) => count_text(f.errors), unit: "SERVER_ERROR/s", scale: count_text,
        lines: [
          { name: "answers", line: "a", of: (f) => f.errors, text: per_second },
          { name: "timeouts", line: "b", of: (f) => f.timeouts, text: per_second },
        ],
      },
      {
        title: "Messages", headline: (f) => count_text(f.ops_per_message), unit: "ops/message", scale: count_text, idle: "no messages",
        lines: [
          { name: "ops", line: "a", of: (f) => f.ops_per_message, text: count_text },
          { name: "refetches", line: "b", of: (f) => f.refetches_per_message, text: count_text },
        ],
        facts: [["messages", (f) => per_second(f.messages)], ["rings", (f) => per_second(f.rings)]],
      },
      PROCESS,
    ],
    backend: [
      {
        title: "Operations", headline: (f) => count_text(f.ops), unit: "/s", scale: count_text,
        lines: [
          { name: "all", line: "a", of: (f) => f.ops, text: per_second },
          { name: "gets", line: "b", of: (f) => f.gets, text: per_second },
          { name: "sets", line: "c", of: (f) => f.sets, text: per_second },
        ],
      },
      HIT_RATIO,
      {
        title: "Memory", headline: (f) => bytes_text(f.bytes), unit: (f) => `of ${bytes_text(f.limit)}`, scale: bytes_text, most: (f) => f.limit,
        lines: [{ name: "items", line: "a", of: (f) => f.bytes, text: bytes_text }],
        facts: [["full", (f) => of_limit(f.bytes, f.limit)], ["items", (f) => whole_text(f.items)]],
      },
      {
        title: "Evictions", headline: (f) => count_text(f.evictions), unit: "/s", scale: count_text,
        lines: [
          { name: "evicted", line: "a", of: (f) => f.evictions, text: per_second },
          { name: "unread", line: "b", of: (f) => f.evicted_unfetched, text: per_second },
        ],
        facts: [["no room", (f) => per_second(f.no_memory)]],
      },
      {
        title: "Sessions", headline: (f) => whole_text(f.sessions), unit: (f) => `of ${whole_text(f.max_sessions)}`, scale: whole_text,
        lines: [{ name: "open", line: "a", of: (f) => f.sessions, text: whole_text }],
        facts: [["slot memory", (f) => bytes_text(f.session_memory)],
          ["by shm", (f) => whole_text(f.by_shm)], ["by rdma", (f) => whole_text(f.by_rdma)], ["by tcp", (f) => whole_text(f.by_tcp)],
          ["of this process", (f) => whole_text(f.by_local)]],
      },
      {
        title: "Lanes awake", headline: (f) => whole_text(f.awake), unit: (f) => `of ${whole_text(f.lanes)}`, scale: whole_text,
        lines: [{ name: "awake", line: "a", of: (f) => f.awake, text: whole_text }],
        facts: [["open", (f) => whole_text(f.lanes)]],
      },
      {
        title: "Messages", headline: (f) => count_text(f.ops_per_message), unit: "ops/message", scale: count_text, idle: "no messages",
        lines: [{ name: "ops", line: "a", of: (f) => f.ops_per_message, text: count_text }],
        facts: [["messages", (f) => per_second(f.messages)]],
      },
      PROCESS,
    ],
  };

  // A table: its rows' names, and columns: name, figure to sort by, its text, a class of the cell.
  function backend_state(b) {
    if (b.standing_in === 1) return ["warn", "◐ gutter"];
    if (b.ejected === 1) return ["bad", "✕ ejected"];
    if (b.held_back === 1) return ["bad", "✕ held back"];
    if (b.up === 1) return ["good", "● up"];
    if (b.up === 0) return b.sessions > 0 ? ["warn", "◐ partly up"] : ["bad", "✕ down"];
    return ["", UNKNOWN];
  }
  // What the sessions go by now. Of a backend with two transports TCP is the one in need.
  function transport_of(b) {
    const used = ["shm", "rdma", "tcp"].filter((name) => b[`by_${name}`] > 0);
    const in_need = b.by_tcp > 0 && b.address !== null && b.address.startsWith("rdma+tcp:");
    return [in_need ? "warn" : "", used.length === 0 ? UNKNOWN : (in_need ? "◐ " : "") + used.join(" + ")];
  }
  function mode_text(l) {
    if (!l.lanes || l.reply_lanes === null) return UNKNOWN;
    if (l.reply_lanes === 0) return "fetch";
    return l.reply_lanes === l.lanes ? "reply" : `${whole_text(l.reply_lanes)} of ${whole_text(l.lanes)} reply`;
  }
  const column = (title, of, text, more) => ({ title, of, text, ...more });
  const LANE_COLUMNS = [
    column("messages/s", (l) => l.messages, count_text), column("ops/\u200bmessage", (l) => l.ops_per_message, count_text),
    column("refetches/\u200bmessage", (l) => l.refetches_per_message, count_text), column("torn/s", (l) => l.torn, count_text),
    column("rings/s", (l) => l.rings, count_text), column("timeouts/s", (l) => l.timeouts, count_text, { cell: (l) => (l.timeouts > 0 ? "bad" : "") }),
    column("mode", (l) => l.reply_lanes, (_, l) => mode_text(l), { word: true }),
  ];
  const BACKENDS = {
    title: "Backends", rows: (f) => f.backends, key: (b) => b.name, spark: (b) => b.ops, about: backends_about, none: "No backend is known yet.",
    columns: [
      column("backend", (b) => b.name, (name) => name, { word: true }),
      column("address", (b) => b.address, (address) => address === null ? UNKNOWN : address, { word: true }),
      column("state", (b) => b.up, (_, b) => backend_state(b)[1], { word: true, cell: (b) => backend_state(b)[0] }),
      column("by", (b) => b.by_tcp, (_, b) => transport_of(b)[1], { word: true, cell: (b) => transport_of(b)[0] }),
      column("sessions", (b) => b.sessions, whole_text), column("ops/s", (b) => b.ops, count_text), { title: "ops/s, five minutes", spark: true },
      column("p50", (b) => seconds_of(b.p50), (_, b) => latency_text(b.p50)), column("p99", (b) => seconds_of(b.p99), (_, b) => latency_text(b.p99)), ...LANE_COLUMNS,
    ],
  };
  const LANES = {
    title: "Lanes", rows: (f) => f.lanes_of_backends, key: (l) => `${l.lane} ${l.backend}`, folded: true, about: (rows) => [`${rows.length} ${rows.length === 1 ? "lane" : "lanes"}, ${rows.filter((l) => l.reply_lanes > 0).length} in reply mode`],
    columns: [
      column("backend", (l) => l.backend, (name) => name, { word: true }), column("lane", (l) => Number(l.lane), (_, l) => l.lane), ...LANE_COLUMNS,
      column("wants/s", (l) => l.wants, count_text), column("fetch size", (l) => l.fetch_size, bytes_text),
    ],
  };
  const PARTITIONS = {
    title: "Partitions", rows: (f) => f.partitions, key: (p) => p.partition, spark: (p) => p.ops, about: (rows) => [`${rows.length}`], none: "No partition has told of itself yet.",
    columns: [
      column("partition", (p) => Number(p.partition), (_, p) => p.partition), column("lanes", (p) => p.lanes, whole_text), column("awake", (p) => p.awake, whole_text),
      column("ops/s", (p) => p.ops, count_text), { title: "ops/s, five minutes", spark: true }, column("messages/s", (p) => p.messages, count_text),
      column("ops/\u200bmessage", (p) => p.ops_per_message, count_text), column("hit ratio", (p) => p.hit_ratio, percent_text), column("items", (p) => p.items, whole_text),
      column("memory", (p) => p.bytes, bytes_text), column("full", (p) => (p.limit ? p.bytes / p.limit : null), (_, p) => of_limit(p.bytes, p.limit)), column("evictions/s", (p) => p.evictions, count_text),
    ],
  };
  const TABLES = { proxy: [BACKENDS, LANES], backend: [PARTITIONS] };

  function backends_about(rows) {
    const known = rows.filter((b) => b.up !== null);
    const off = known.filter((b) => b.up !== 1).map((b) => b.name);
    if (off.length === 0) return [known.length > 1 ? `all ${known.length} up` : known.length ? "up" : ""];
    const named = off.slice(0, 4).join(", ") + (off.length > 4 ? ` and ${off.length - 4} more` : "");
    return [`${off.length} of ${known.length} not up: ${named}`, "bad"];
  }

  // --- the document

  function element(tag, attributes, ...children) {
    const made = ["svg", "path", "line"].includes(tag) ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) made.setAttribute(name, value);
    made.append(...children);
    return made;
  }
  function say(node, text) {
    if (node.textContent !== text) node.textContent = text;
  }
  function set(node, name, value) {
    if (node.getAttribute(name) !== value) node.setAttribute(name, value);
  }

  // --- history: { time, figures } by the second, and the moments of restarts

  const history = [];
  let restarts = [];
  let last_asked_every = EVERY_MS;

  function remember(time, figures) {
    const kept = figures && { ...figures, lanes_of_backends: null, rows: rows_by_key(figures) };
    history.push({ time, figures: kept });
    while (history.length && history[0].time < time - SPAN_MS - 2000) history.shift();
    restarts = restarts.filter((moment) => moment > time - SPAN_MS);
  }
  function rows_by_key(figures) {
    const rows = new Map();
    for (const table of TABLES[figures.kind] || []) {
      if (table.spark) for (const row of table.rows(figures)) rows.set(table.key(row), table.spark(row));
    }
    return rows;
  }

  // --- plots: x from 0 (five minutes ago) to 300, y from 0 (top) to 100

  const from_zero = (most) => ({ most, least: null, height: (value) => Math.max(0, value) / most });
  // Whole powers of ten: what is usual and what is a hundred times slower are both seen.
  function by_powers(values) {
    const positive = values.filter((value) => value > 0);
    if (positive.length === 0) return from_zero(1);
    const low = Math.floor(Math.log10(positive.reduce((a, b) => Math.min(a, b))));
    const high = Math.max(low + 1, Math.ceil(Math.log10(positive.reduce((a, b) => Math.max(a, b)))));
    return { most: 10 ** high, least: 10 ** low, height: (value) => (value > 0 ? Math.max(0, (Math.log10(value) - low) / (high - low)) : 0) };
  }

  function path_of(now, scale, value_of) {
    const parts = [];
    let last = null;
    for (const { time, figures } of history) {
      const value = figures ? value_of(figures) : null;
      if (value === null || value === undefined || !Number.isFinite(value)) {
        last = null;
        continue;
      }
      const x = ((time - now + SPAN_MS) / SPAN_MS) * 300;
      const y = 100 - scale.height(value) * 100;
      const joined = last !== null && time - last <= Math.max(GAP_MS, 1.5 * last_asked_every);
      parts.push(`${joined ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}${joined ? "" : "h.01"}`);
      last = time;
    }
    return parts.join("");
  }
  function area_of(path) {
    return path.split("M").filter(Boolean).map((piece) => {
      const xs = [...piece.matchAll(/(?:^|L)([\d.-]+) /g)].map((found) => found[1]);
      return `M${xs[0]} 100L${piece}L${xs[xs.length - 1]} 100Z`;
    }).join("");
  }
  // The next 1, 2 or 5: a scale that stands still while the load wavers. Bytes count in powers of 1024.
  function rounded_up(value, base) {
    let unit = 1;
    while (unit < Infinity && value >= unit * base) unit *= base;
    const size = value / unit;
    const step = 10 ** Math.floor(Math.log10(size));
    return [1, 2, 5, 10].map((factor) => factor * step * unit).find((top) => top >= value * 0.9999) || value;
  }

  class Plot {
    constructor(panel) {
      this.panel = panel;
      this.area = element("path", { class: "area" });
      this.lines = panel.lines.map((line) => element("path", { class: line.line }));
      this.cursor = element("line", { class: "cursor", y1: 0, y2: 100, visibility: "hidden" });
      this.svg = element("svg", { viewBox: "0 0 300 100", preserveAspectRatio: "none", role: "img" },
        element("line", { x1: 0, y1: 0, x2: 300, y2: 0 }), element("line", { x1: 0, y1: 100, x2: 300, y2: 100 }),
        this.area, ...[...this.lines].reverse(), this.cursor);
      this.most = element("span", { class: "most" });
      this.empty = element("span", { class: "empty" });
      this.node = element("figure", { class: "plot" }, this.svg, this.most, this.empty);
      this.restart_lines = [];
      this.node.addEventListener("pointermove", (event) => point_at(event, this.svg));
      this.node.addEventListener("pointerleave", () => point_at(null));
    }
    draw(now, shown) {
      const values = history.flatMap(({ figures }) => (figures ? this.panel.lines.map((line) => line.of(figures)) : [])).filter(Number.isFinite);
      const highest = values.reduce((a, b) => Math.max(a, b), 0);
      const fixed = this.panel.most && shown ? this.panel.most(shown) : null;
      const most = Math.max(fixed || 0, fixed && highest <= fixed ? 0 : rounded_up(highest, this.panel.scale === bytes_text ? 1024 : 10)) || 1;
      const scale = this.panel.is_log ? by_powers(values) : from_zero(most);
      const paths = this.panel.lines.map((line) => path_of(now, scale, line.of));
      paths.forEach((path, at) => set(this.lines[at], "d", path));
      set(this.area, "d", this.panel.is_log ? "" : area_of(paths[0]));
      const span = (scale.least === null ? "" : `${this.panel.scale(scale.least)} to `) + this.panel.scale(scale.most) + (scale.least === null ? "" : ", by powers of ten");
      say(this.most, values.length && highest + (fixed || 0) > 0 ? span : "");
      say(this.empty, values.length ? "" : this.panel.idle && shown && shown.has_rates ? this.panel.idle : "no figures yet");
      set(this.svg, "aria-label", `${this.panel.title}, the last five minutes: ` + (values.length ? `at most ${this.panel.scale(highest)}` : "no figures"));
      this.draw_marks(now);
    }
    draw_marks(now) {
      while (this.restart_lines.length > restarts.length) this.restart_lines.pop().remove();
      restarts.forEach((moment, at) => {
        if (!this.restart_lines[at]) this.svg.append((this.restart_lines[at] = element("line", { class: "restart", y1: 0, y2: 100 })));
        const x = ((moment - now + SPAN_MS) / SPAN_MS) * 300;
        set(this.restart_lines[at], "x1", x.toFixed(1));
        set(this.restart_lines[at], "x2", x.toFixed(1));
      });
    }
    point(x) {
      set(this.cursor, "visibility", x === null ? "hidden" : "visible");
      if (x !== null) for (const end of ["x1", "x2"]) set(this.cursor, end, x.toFixed(1));
    }
  }

  // --- panels

  class Panel {
    constructor(panel) {
      this.panel = panel;
      this.plot = new Plot(panel);
      this.value = element("span");
      this.unit = element("small");
      this.right = element("span", {}, "now");
      this.figures = [];
      const list = element("dl", { class: "figures" });
      if (panel.lines.length > 1) for (const line of panel.lines) this.add(list, line.name, (f) => line.text(line.of(f), f), line.line);
      for (const [name, text] of panel.facts || []) this.add(list, name, text, null);
      this.node = element("section", { class: "panel", "aria-label": panel.title },
        element("div", { class: "top" }, element("h2", {}, panel.title), element("p", { class: "headline" }, this.value, " ", this.unit)),
        this.plot.node, element("div", { class: "time", "aria-hidden": "true" }, element("span", {}, "5 min ago"), this.right), list);
    }
    add(list, name, text, line) {
      const value = element("dd", {}, UNKNOWN);
      const swatch = line ? [element("svg", { class: "swatch", viewBox: "0 0 20 8", "aria-hidden": "true" }, element("path", { class: line, d: "M0 4H20" }))] : [];
      list.append(element("div", {}, ...swatch, element("dt", {}, name), value));
      this.figures.push([value, text]);
    }
    draw(now, shown, pointed) {
      const { headline, unit } = this.panel;
      say(this.value, shown ? headline(shown) : UNKNOWN);
      say(this.unit, typeof unit === "function" ? (shown ? unit(shown) : "") : unit);
      for (const [node, text] of this.figures) say(node, shown ? text(shown) : UNKNOWN);
      this.plot.draw(now, shown || latest_figures());
      this.plot.point(pointed);
      say(this.right, pointed === null ? "now" : `at −${age_text(((300 - pointed) / 300) * (SPAN_MS / 1000))}`);
    }
  }

  // --- tables

  class Table {
    constructor(table) {
      this.table = table;
      this.sort = { at: 0, down: false };
      this.rows = new Map();
      this.about = element(table.folded ? "span" : "p");
      this.heads = table.columns.map((col, at) => this.head(col, at));
      this.body = element("tbody");
      const grid = element("div", { class: "scroll", role: "region", tabindex: 0, "aria-label": `${table.title}, a table` },
        element("table", {}, element("thead", {}, element("tr", {}, ...this.heads)), this.body));
      const title = element("h2", {}, table.title);
      this.fold = table.folded ? element("details", {}, element("summary", {}, title, this.about), grid) : null;
      this.node = element("section", { class: "list", "aria-label": table.title }, ...(this.fold ? [this.fold] : [element("div", { class: "top" }, title, this.about), grid]));
      if (this.fold) this.fold.addEventListener("toggle", draw);
    }
    head(col, at) {
      const node = element("th", { scope: "col" });
      if (col.word) node.className = "word";
      if (col.spark) {
        node.append(col.title);
        return node;
      }
      const button = element("button", { type: "button" }, col.title);
      button.addEventListener("click", () => {
        this.sort = { at, down: this.sort.at === at ? !this.sort.down : !col.word };
        draw();
      });
      node.append(button);
      return node;
    }
    draw(now, figures) {
      const rows = figures ? this.table.rows(figures) : [];
      const [about, tone] = rows.length ? this.table.about(rows) : [figures ? this.table.none || "none" : UNKNOWN];
      say(this.about, about);
      this.about.className = tone || "";
      this.heads.forEach((head, at) => set(head, "aria-sort", at === this.sort.at ? (this.sort.down ? "descending" : "ascending") : "none"));
      if (this.fold && !this.fold.open) return;
      const wanted = new Set(rows.map(this.table.key));
      for (const [key, row] of this.rows) if (!wanted.has(key)) row.node.remove(), this.rows.delete(key);
      this.sorted(rows).forEach((row, at) => this.draw_row(row, at, now));
    }
    sorted(rows) {
      const { of } = this.table.columns[this.sort.at];
      if (this.sort.at === 0 && !this.sort.down) return rows;
      const sign = this.sort.down ? -1 : 1;
      return [...rows].sort((left, right) => {
        const [a, b] = [of(left), of(right)];
        if (a === null || b === null) return (a === null) - (b === null); // nothing known: last, whichever way
        return sign * (a < b ? -1 : a > b ? 1 : 0);
      });
    }
    draw_row(row, at, now) {
      const key = this.table.key(row);
      let made = this.rows.get(key);
      if (!made) this.rows.set(key, (made = this.make_row()));
      if (this.body.children[at] !== made.node) this.body.insertBefore(made.node, this.body.children[at] || null);
      this.table.columns.forEach((col, n) => {
        if (col.spark) return this.draw_spark(made.spark, key, now);
        const cell = made.cells[n];
        say(cell, col.text(col.of(row), row));
        if (n === 0) set(cell, "title", cell.textContent);
        const tone = [col.word ? "word" : "", col.cell ? col.cell(row) : ""].join(" ").trim();
        if (cell.className !== tone) cell.className = tone;
      });
    }
    make_row() {
      const spark = element("path");
      const cells = this.table.columns.map((col) => (col.spark ? element("td", {}, element("svg", { class: "spark", viewBox: "0 0 300 100", preserveAspectRatio: "none", "aria-hidden": "true" }, spark)) : element("td")));
      return { node: element("tr", {}, ...cells), cells, spark };
    }
    // All sparks of a table have one scale: what is small in one is small in all.
    draw_spark(path, key, now) {
      set(path, "d", path_of(now, from_zero(spark_most(now)), (f) => f.rows.get(key) ?? null));
    }
  }
  let spark_scale = { time: null, most: 1 };
  function spark_most(now) {
    if (spark_scale.time !== now) {
      let most = 0;
      for (const { figures } of history) if (figures) for (const value of figures.rows.values()) if (value > most) most = value;
      spark_scale = { time: now, most: most || 1 };
    }
    return spark_scale.most;
  }

  // --- the whole

  const by_id = (id) => document.getElementById(id);
  let panels = [];
  let tables = [];
  let kind = null;
  let pointed = null; // x of the pointer in all plots, 0 to 300
  let newest = null; // the last answer's figures, lanes and all; null when there is no answer
  let state = { name: "waiting", word: "waiting for the first answer", since: null };

  const latest_figures = () => (history.findLast((point) => point.figures) || { figures: null }).figures;

  function build(new_kind) {
    if (new_kind === kind) return;
    kind = new_kind;
    panels = (PANELS[kind] || []).map((panel) => new Panel(panel));
    tables = (TABLES[kind] || []).map((table) => new Table(table));
    by_id("main").replaceChildren(element("div", { class: "panels" }, ...panels.map((panel) => panel.node)), ...tables.map((table) => table.node));
    say(by_id("name"), `egret-${kind}`);
    document.title = `egret-${kind} · ${location.host || "status"}`;
  }

  function point_at(event, svg) {
    if (event) {
      const box = svg.getBoundingClientRect();
      pointed = Math.min(300, Math.max(0, ((event.clientX - box.left) / box.width) * 300));
    } else {
      pointed = null;
    }
    draw();
  }
  function pointed_figures(now) {
    if (pointed === null) return newest;
    const time = now - SPAN_MS + (pointed / 300) * SPAN_MS;
    const near = history.reduce((best, point) => (Math.abs(point.time - time) < Math.abs(best.time - time) ? point : best), { time: -Infinity, figures: null });
    return Math.abs(near.time - time) < GAP_MS ? near.figures : null;
  }

  function draw() {
    const now = history.length ? history[history.length - 1].time : performance.now();
    const shown = pointed_figures(now);
    for (const panel of panels) panel.draw(now, shown, pointed);
    for (const table of tables) table.draw(now, newest);
    draw_state();
  }
  function draw_state() {
    const marks = { live: "●", waiting: "…", down: "✕", odd: "◐" };
    set(by_id("state"), "class", `state ${state.name}`);
    document.body.className = state.name === "down" ? "down" : "";
    say(by_id("mark"), marks[state.name]);
    say(by_id("word"), state.word);
    say(by_id("since"), state.name === "down" && state.since !== null ? ` for ${age_text((performance.now() - state.since) / 1000)}` : "");
    if (!newest) return say(by_id("about"), location.host);
    const up = newest.started === null ? null : newest.server_time - newest.started;
    say(by_id("about"), [newest.version && `version ${newest.version}`, location.host, up !== null && `up ${age_text(up)}`].filter(Boolean).join(" · "));
  }

  // --- asking

  let before = null;
  let answered_at = null;
  let life = null; // when the process that answered last was started: it may die and come back between two answers

  async function ask() {
    const response = await fetch("metrics", { cache: "no-store", credentials: "omit", redirect: "error", signal: AbortSignal.timeout(ANSWER_WITHIN_MS) });
    const time = performance.now();
    if (!response.ok) throw new Error(`answered ${response.status}`);
    const text = await response.text();
    const stamp = Date.parse(response.headers.get("Date") || "");
    return { time, text, server_time: (Number.isNaN(stamp) ? Date.now() : stamp) / 1000 };
  }
  function take(answer) {
    const now = Egret.parse(answer.text, answer.time);
    const figures = Egret.figures(before, now);
    if (!figures.kind) throw new Error("answered without Egret's metrics");
    figures.server_time = answer.server_time;
    if (before) last_asked_every = answer.time - before.time;
    if (figures.restarted || (life !== null && figures.started !== life)) restarts.push(answer.time);
    life = figures.started;
    before = now;
    build(figures.kind);
    newest = figures;
    const fresh = restarts.length && answer.time - restarts[restarts.length - 1] < 60000;
    state = { name: "live", word: fresh ? "live, restarted within the last minute" : "live", since: null };
    answered_at = answer.time;
    remember(answer.time, figures);
  }
  function miss(error) {
    const time = performance.now();
    const why = error.name === "TimeoutError" ? "does not answer (stalled)" : /^answered/.test(error.message) ? error.message : "no answer (down, or unreachable)";
    if (state.name !== "down") state = { name: "down", word: why, since: answered_at === null ? time : answered_at };
    state.word = why;
    newest = null;
    before = null; // a rate over the time of a silence would be the past's
    remember(time, null);
  }
  async function poll() {
    const started = performance.now();
    try {
      take(await ask());
    } catch (error) {
      miss(error);
    }
    draw();
    setTimeout(poll, Math.max(50, EVERY_MS - (performance.now() - started)));
  }
  poll();
})();
