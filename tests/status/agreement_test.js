// The status page's model and egret-top make the same figures of the same metrics: every figure that either has.
"use strict";
const { test } = require("node:test");
const assert = require("node:assert");
const { execFile, execFileSync } = require("node:child_process");
const http = require("node:http");
const path = require("node:path");
const Egret = require(path.join(__dirname, "../../protocol/page/model.js"));

const TOP = path.join(process.env.EGRET_BUILD, "egret-top");
const NOT_FIGURES = ["address", "up", "kind", "version", "restarted", "has_rates"];

// The n-th answer of metrics.py's daemon.
const text_of = (make, tick) =>
  execFileSync("/usr/bin/python3", ["-c", `import sys; sys.path.insert(0, ${JSON.stringify(__dirname)}); import metrics; print(metrics.${make}(${tick}), end="")`], { encoding: "utf8" });

async function figures_of_top(texts) {
  let asked = 0;
  const server = http.createServer((_, answer) => answer.end(texts[Math.min(asked++, texts.length - 1)]));
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  const said = await new Promise((done, fail) =>
    execFile(TOP, [`127.0.0.1:${server.address().port}`, "--once", "--json"], { encoding: "utf8" }, (error, out) => (error ? fail(error) : done(out))));
  server.close();
  return JSON.parse(said).daemons[0];
}

// Rates by the growth of `unit`: the time between two looks is egret-top's own.
function compare(page, top, unit, where) {
  for (const name of new Set([...Object.keys(page), ...Object.keys(top)])) {
    if (NOT_FIGURES.includes(name)) continue;
    const [mine, its] = [page[name], top[name]];
    assert.ok(mine !== undefined && its !== undefined, `${where}.${name}: the page has ${mine}, egret-top ${its}`);
    if (mine === null || its === null || typeof mine === "string") assert.equal(its, mine, `${where}.${name}`);
    else if (typeof mine === "object") compare(mine, its, unit, `${where}.${name}`);
    else if (typeof mine === "boolean") assert.equal(its, mine, `${where}.${name}`);
    else {
      const same = (a, b) => Math.abs(a - b) <= 1e-9 * Math.max(Math.abs(a), Math.abs(b));
      assert.ok(same(its, mine) || same(its / unit.top, mine / unit.page), `${where}.${name}: the page has ${mine}, egret-top ${its}`);
    }
  }
}

for (const [make, parts, measure] of [["proxy_text", "backends", "requests"], ["backend_text", "partitions", "ops"]]) {
  test(`the page and egret-top agree on ${make}`, async () => {
    const texts = [text_of(make, 1), text_of(make, 2)];
    const page = Egret.figures(Egret.parse(texts[0], 0), Egret.parse(texts[1], 1000));
    const top = await figures_of_top(texts);
    const unit = { page: page[measure], top: top[measure] };
    assert.ok(unit.page > 0 && unit.top > 0);
    assert.deepEqual([top.kind, top.version], [page.kind, page.version]);
    const { lanes_of_backends: page_lanes = [], [parts]: page_parts, ...page_own } = page;
    const { lanes_of_backends: top_lanes = [], [parts]: top_parts, ...top_own } = top;
    assert.equal(page_lanes.length, top_lanes.length);
    page_lanes.forEach((lane, at) => compare(lane, top_lanes[at], unit, `lanes[${at}]`));
    compare(page_own, top_own, unit, "daemon");
    assert.equal(page_parts.length, top_parts.length);
    page_parts.forEach((part, at) => compare(part, top_parts[at], unit, `${parts}[${at}]`));
  });
}
