// What the status page knows: samples out of Prometheus text, and figures out of two scrapes. Which figures there are, and
// how each is computed, is in figures.json, which egret-top is built from, too. No document here, so that node can test it.
//
//   text ─ parse ─▶ Scrape ─┐
//   the one before ─────────┴─ figures ─▶ { kind, summary, backends, lanes, partitions }, null wherever nothing is known
"use strict";

const Egret = (() => {
  // In the page, embed.py puts figures.json in front.
  const FIGURES = typeof module !== "undefined" ? require("./figures.json") : EGRET_FIGURES;
  const MAX_SAMPLES = 400000;
  const NAME = /^[a-zA-Z_:][a-zA-Z0-9_:]*/;
  const LABEL = /([a-zA-Z_][a-zA-Z0-9_]*)\s*=\s*"((?:[^"\\]|\\.)*)"\s*,?\s*/y;
  const ESCAPES = { "\\n": "\n", "\\\\": "\\", '\\"': '"' };

  function number(text) {
    if (text === "+Inf" || text === "Inf") return Infinity;
    if (text === "-Inf") return -Infinity;
    if (!/^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/.test(text)) return NaN;
    return Number(text);
  }

  // What a sample is called: its name and labels, out of the text before its value; null: it is none.
  function parse_key(key) {
    const name = NAME.exec(key);
    if (!name) return null;
    let at = name[0].length;
    const labels = new Map();
    if (key[at] === "{") {
      LABEL.lastIndex = ++at;
      for (let found; (found = LABEL.exec(key)); at = LABEL.lastIndex) {
        labels.set(found[1], found[2].replace(/\\[n\\"]/g, (escape) => ESCAPES[escape]));
      }
      while (key[at] === " ") ++at;
      if (key[at++] !== "}") return null;
    }
    return at === key.length ? { name: name[0], labels } : null;
  }

  // Series are the same ones every second: each key is parsed once. With many backends that is most of the work.
  const keys = new Map();
  function known_key(key) {
    let found = keys.get(key);
    if (found === undefined) {
      if (keys.size > MAX_SAMPLES) keys.clear();
      keys.set(key, (found = parse_key(key)));
    }
    return found;
  }

  // A line that is none is left out: half of a page is better than no page.
  function parse_line(line) {
    const braces = line.lastIndexOf("}") + 1;
    const end = braces > 0 ? braces : line.search(/[ \t]/);
    if (end <= 0) return null;
    const key = line.slice(0, end);
    const called = known_key(key);
    const value = number(line.slice(end).trim().split(/\s+/)[0]);
    return called === null || !Number.isFinite(value) ? null : { name: called.name, key, labels: called.labels, value };
  }

  // The series of one answer, by metric name and by the text of their labels.
  class Scrape {
    constructor(time) {
      this.time = time; // milliseconds of any clock that does not go back
      this.metrics = new Map();
    }
    add(sample) {
      let series = this.metrics.get(sample.name);
      if (!series) this.metrics.set(sample.name, (series = new Map()));
      series.set(sample.key, sample);
    }
    series(name) {
      return this.metrics.get(name) || new Map();
    }
    // The sum over the series that match, or null if there is none.
    sum(name, match) {
      let sum = null;
      for (const sample of this.series(name).values()) if (matches(sample, match)) sum += sample.value;
      return sum;
    }
    label_values(name, label) {
      const values = new Set();
      for (const sample of this.series(name).values()) if (sample.labels.has(label)) values.add(sample.labels.get(label));
      return [...values].sort(new Intl.Collator("en", { numeric: true }).compare);
    }
  }

  function matches(sample, match) {
    for (const label in match) if (sample.labels.get(label) !== match[label]) return false;
    return true;
  }

  function parse(text, time) {
    const scrape = new Scrape(time);
    let samples = 0;
    for (const line of text.split("\n")) {
      if (line === "" || line[0] === "#") continue;
      const sample = parse_line(line);
      if (!sample) continue;
      if (++samples > MAX_SAMPLES) break;
      scrape.add(sample);
    }
    return scrape;
  }

  // What `part` is of both.
  function share(part, rest) {
    return part === null || rest === null || part + rest === 0 ? null : part / (part + rest);
  }

  // Two scrapes of one life of a process. What only one of them has counts for nothing: a series that is new has no rate yet.
  class Step {
    constructor(before, now) {
      this.now = now;
      this.restarted = before !== null && has_restarted(before, now);
      this.before = this.restarted ? null : before;
      this.seconds = this.before ? (now.time - before.time) / 1000 : 0;
    }
    growth(name, match) {
      if (!this.before) return null;
      let growth = null;
      const old = this.before.series(name);
      for (const [key, sample] of this.now.series(name)) {
        const last = old.get(key);
        if (!last || !matches(sample, match)) continue;
        growth += Math.max(0, sample.value - last.value);
      }
      return growth;
    }
    rate(name, match) {
      const growth = this.seconds > 0 ? this.growth(name, match) : null;
      return growth === null ? null : growth / this.seconds;
    }
    // Of the growth of `name`, how much for each of `by`.
    ratio(name, by) {
      const growth = this.growth(name);
      const per = this.growth(by);
      return growth === null || !per ? null : growth / per;
    }
    share(part, rest) {
      return share(this.growth(part), this.growth(rest));
    }
    // { le: growth } of a histogram, ascending, cumulative as they come.
    buckets(name) {
      const bounds = new Map();
      if (!this.before) return [];
      const old = this.before.series(`${name}_bucket`);
      for (const [key, sample] of this.now.series(`${name}_bucket`)) {
        const last = old.get(key);
        const le = number(sample.labels.get("le") || "");
        if (!last || Number.isNaN(le)) continue;
        bounds.set(le, (bounds.get(le) || 0) + Math.max(0, sample.value - last.value));
      }
      return [...bounds].map(([le, count]) => ({ le, count })).sort((a, b) => a.le - b.le);
    }
    quantile(q, name) {
      return quantile(q, this.buckets(name));
    }
  }

  function has_restarted(before, now) {
    const start = "process_start_time_seconds";
    if (before.sum(start) !== now.sum(start)) return true;
    for (const name of now.metrics.keys()) {
      if (!name.endsWith("_total")) continue;
      const old = before.series(name);
      for (const [key, sample] of now.series(name)) {
        const last = old.get(key);
        if (last && sample.value < last.value) return true;
      }
    }
    return false;
  }

  // As Prometheus' histogram_quantile: linear within a bucket; beyond the last finite bound that bound, as "more than".
  function quantile(q, buckets) {
    const total = buckets.length ? buckets[buckets.length - 1].count : 0;
    if (!(total > 0)) return null;
    let low = 0;
    let below = 0;
    for (const { le, count } of buckets) {
      if (count >= q * total && count > below) {
        if (le === Infinity) return { seconds: low, beyond: true };
        return { seconds: low + ((le - low) * (q * total - below)) / (count - below), beyond: false };
      }
      if (le !== Infinity) low = le;
      below = Math.max(below, count);
    }
    return { seconds: low, beyond: true };
  }

  function kind_of(scrape) {
    for (const kind of ["proxy", "backend"]) if (scrape.metrics.has(`egret_${kind}_build_info`)) return kind;
    for (const name of scrape.metrics.keys()) {
      const found = /^egret_(proxy|backend)_/.exec(name);
      if (found) return found[1];
    }
    return null;
  }

  // How a figure comes out of its row of figures.json.
  const HOW = {
    sum: (step, { metric, label }) => step.now.sum(metric, label),
    largest: (step, { metric, label }) => largest(step.now, metric, label),
    count: (step, { metric, label }) => count(step.now, metric, label),
    rate: (step, { metric, label }) => step.rate(metric, label),
    ratio: (step, { metric, other }) => step.ratio(metric, other),
    share: (step, { metric, other }) => step.share(metric, other),
    share_now: (step, { metric, other }) => share(step.now.sum(metric), step.now.sum(other)),
    quantile: (step, { metric, q }) => step.quantile(q, metric),
  };

  function rows_of(table) {
    return FIGURES.tables[table].flatMap((group) => FIGURES.groups[group]);
  }
  const TABLES = Object.fromEntries(Object.keys(FIGURES.tables).map((table) => [table, rows_of(table)]));
  const COMMANDS = TABLES.proxy.filter((row) => row.label !== undefined).map((row) => row.label.command);

  // Every figure of a table, by its name.
  function values_of(table, step) {
    return Object.fromEntries(TABLES[table].map((row) => [row.name, HOW[row.how](step, row)]));
  }

  function count(scrape, name, match) {
    return [...scrape.series(name).values()].filter((sample) => matches(sample, match)).length;
  }

  function largest(scrape, name, match) {
    const values = [...scrape.series(name).values()].filter((sample) => matches(sample, match)).map((sample) => sample.value);
    return values.length ? values.reduce((a, b) => Math.max(a, b)) : null;
  }

  function label_of(scrape, name, label) {
    for (const sample of scrape.series(name).values()) if (sample.labels.has(label)) return sample.labels.get(label);
    return null;
  }

  // Sums over all lanes are made once a lane, not once a backend and lane: 64 backends of 64 lanes are a page, too.
  function by_label(scrape, label, names) {
    const groups = new Map();
    for (const name of names) {
      for (const [key, sample] of scrape.series(name)) {
        const value = sample.labels.get(label);
        if (value === undefined) continue;
        let group = groups.get(value);
        if (!group) groups.set(value, (group = new Scrape(scrape.time)));
        let series = group.metrics.get(name);
        if (!series) group.metrics.set(name, (series = new Map()));
        series.set(key, sample);
      }
    }
    return groups;
  }

  // One Step for each value of `label`, over the metrics that carry it.
  function steps_by(step, label, prefix) {
    const names = [...step.now.metrics.keys()].filter((name) => name.startsWith(prefix));
    const now = by_label(step.now, label, names);
    const before = step.before ? by_label(step.before, label, names) : new Map();
    const order = new Intl.Collator("en", { numeric: true }).compare;
    return [...now].sort((a, b) => order(a[0], b[0])).map(([value, scrape]) => {
      const part = Object.create(Step.prototype);
      return [value, Object.assign(part, { now: scrape, before: before.get(value) || null, seconds: step.seconds, restarted: step.restarted })];
    });
  }

  function proxy_figures(step) {
    const backends = steps_by(step, "backend", "egret_proxy_");
    return {
      ...values_of("proxy", step),
      backends: backends.map(([name, part]) => (
        { name, address: label_of(part.now, "egret_proxy_backend_info", "address"), ...values_of("backends", part) })),
      lanes_of_backends: backends.flatMap(([backend, part]) =>
        steps_by(part, "lane", "egret_proxy_lane_").map(([lane, own]) => ({ backend, lane, ...values_of("lanes", own) }))),
    };
  }

  function backend_figures(step) {
    return {
      ...values_of("backend", step),
      partitions: steps_by(step, "partition", "egret_backend_").map(([partition, part]) => ({ partition, ...values_of("partitions", part) })),
    };
  }

  // All that is shown of `now`, given the scrape before it (or null).
  function figures(before, now) {
    const kind = kind_of(now);
    const step = new Step(before, now);
    const info = kind ? [...now.series(`egret_${kind}_build_info`).values()][0] : undefined;
    return {
      kind, restarted: step.restarted, has_rates: step.seconds > 0, version: (info && info.labels.get("version")) || null,
      started: now.sum("process_start_time_seconds"),
      ...(kind === "proxy" ? proxy_figures(step) : kind === "backend" ? backend_figures(step) : {}),
    };
  }

  // --- figures as text. Null is a dash: nothing is known; zero is "0".

  const UNKNOWN = "–";
  const THIN = "\u202f";

  function digits(value) {
    if (value === 0) return "0";
    if (value < 0.001) return "<0.001";
    if (value < 10) return String(Number(value.toPrecision(value < 1 ? 2 : 3)));
    return value < 100 ? value.toFixed(1).replace(/\.0$/, "") : Math.round(value).toString();
  }

  function scaled(value, base, units) {
    if (value === null || value === undefined || Number.isNaN(value)) return UNKNOWN;
    if (!Number.isFinite(value)) return "∞";
    let unit = 0;
    while (Math.abs(value) >= base * 0.9995 && unit + 1 < units.length) {
      value /= base;
      ++unit;
    }
    if (Math.abs(value) >= 1e6) return `${value.toExponential(1)}${units[unit] && THIN + units[unit]}`;
    return `${digits(value)}${units[unit] && THIN + units[unit]}`;
  }

  const count_text = (value) => scaled(value, 1000, ["", "k", "M", "G", "T", "P", "E"]);
  const bytes_text = (value) => scaled(value, 1024, ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"]);

  function whole_text(value) {
    if (value === null || value === undefined || !Number.isFinite(value)) return UNKNOWN;
    return Math.abs(value) >= 1e9 ? count_text(value) : Math.round(value).toString().replace(/\B(?=(\d{3})+$)/g, THIN);
  }

  function percent_text(share) {
    if (share === null || share === undefined || !Number.isFinite(share)) return UNKNOWN;
    const percent = share * 100;
    // Never rounded to a hundred that it is not, nor to a zero.
    if (percent < 100 && percent > 99.95) return `>99.9${THIN}%`;
    if (percent > 0 && percent < 0.1) return `<0.1${THIN}%`;
    return `${percent === 100 || percent === 0 ? percent : percent.toFixed(1)}${THIN}%`;
  }

  function seconds_text(seconds) {
    if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return UNKNOWN;
    if (seconds === 0) return "0";
    if (seconds < 0.9995e-3) return `${digits(seconds * 1e6)}${THIN}µs`;
    return seconds < 0.9995 ? `${digits(seconds * 1e3)}${THIN}ms` : `${digits(seconds)}${THIN}s`;
  }

  function latency_text(found) {
    return found ? (found.beyond ? ">" : "") + seconds_text(found.seconds) : UNKNOWN;
  }

  function age_text(seconds) {
    if (seconds === null || !Number.isFinite(seconds)) return UNKNOWN;
    const units = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];
    seconds = Math.max(0, Math.floor(seconds));
    const first = Math.max(0, units.findIndex(([, size]) => seconds >= size));
    if (seconds === 0) return `0${THIN}s`;
    const [unit, size] = units[first];
    const rest = units[first + 1];
    const more = rest ? Math.floor((seconds % size) / rest[1]) : 0;
    return `${Math.floor(seconds / size)}${THIN}${unit}${more ? ` ${more}${THIN}${rest[0]}` : ""}`;
  }

  return { parse, figures, quantile, COMMANDS, count_text, bytes_text, whole_text, percent_text, seconds_text, latency_text, age_text, UNKNOWN };
})();

if (typeof module !== "undefined") module.exports = Egret;
