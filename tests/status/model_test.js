// The status page's model.js: what it makes of Prometheus text.
"use strict";
const { test } = require("node:test");
const assert = require("node:assert");
const path = require("node:path");
const Egret = require(path.join(__dirname, "../../protocol/page/model.js"));

const THIN = "\u202f";
const PROXY = 'egret_proxy_build_info{version="1.2"} 1\nprocess_start_time_seconds 50\n';
const BACKEND = 'egret_backend_build_info{version="1.2"} 1\nprocess_start_time_seconds 50\n';

// The figures between two texts that are two seconds apart.
const between = (first, second) => Egret.figures(Egret.parse(first, 1000), Egret.parse(second, 3000));
const values = (text, name) => [...Egret.parse(text, 0).series(name).values()].map((sample) => sample.value);

test("a sample is a name, labels and a number; a timestamp and comments are passed over", () => {
  assert.deepEqual(values("# HELP a says\n# TYPE a counter\na 3\n", "a"), [3]);
  assert.deepEqual(values('a{x="1",y="2",} 1.5e3 1700000000000\n', "a"), [1500]);
  const [sample] = Egret.parse('a{x="say \\"hi\\"\\n\\\\ }"} 1\n', 0).series("a").values();
  assert.equal(sample.labels.get("x"), 'say "hi"\n\\ }');
});

test("a line that is no sample is left out, the others are kept", () => {
  for (const bad of ["a", "a{", 'a{x="1" 1', 'a{x=1} 1', "a one", "a 0x10", "a NaN", "a +Inf", "{} 1", "\u0000", "é 1", 'a{x="1"}'])
    assert.deepEqual(values(`${bad}\nb 1\n`, "b"), [1], bad), assert.deepEqual(values(bad, "a"), [], bad);
});

test("a label that bears the name of something of JavaScript's is a label", () => {
  const scrape = Egret.parse('egret_proxy_backend_up{backend="__proto__"} 1\negret_proxy_backend_up{backend="constructor"} 1\n', 0);
  assert.deepEqual(Egret.figures(null, scrape).backends.map((b) => [b.name, b.up]), [["__proto__", 1], ["constructor", 1]].sort());
});

test("rates are growth by the second, and are not known before the second answer", () => {
  const text = (n) => `${PROXY}egret_proxy_requests_total{command="get"} ${n}\negret_proxy_requests_total{command="set"} 7\n`;
  const figures = between(text(10), text(30));
  assert.deepEqual([figures.requests, figures.get, figures.set, figures.touch], [10, 10, 0, null]);
  assert.equal(Egret.figures(null, Egret.parse(text(30), 0)).requests, null);
});

test("a process started anew has no rates, whether its start time tells or a counter that went back", () => {
  const text = (start, n) => `egret_proxy_build_info 1\nprocess_start_time_seconds ${start}\negret_proxy_requests_total{command="get"} ${n}\n`;
  for (const [first, second] of [[text(1, 5), text(2, 500)], [text(1, 500), text(1, 5)]]) {
    const figures = between(first, second);
    assert.deepEqual([figures.restarted, figures.requests], [true, null]);
  }
  assert.equal(between(text(1, 5), text(1, 5)).restarted, false);
});

test("a series that was not there before counts for nothing yet", () => {
  const lane = (backend, n) => `egret_proxy_lane_ops_total{backend="${backend}",lane="0"} ${n}\n`;
  const figures = between(PROXY + lane("a", 10), PROXY + lane("a", 12) + lane("b", 1000000));
  assert.deepEqual([figures.ops, figures.backends.map((b) => b.ops)], [1, [1, null]]);
});

test("a quotient of nothing is not known; zero of something is zero", () => {
  const text = (hits, misses) => `${PROXY}egret_proxy_get_hits_total ${hits}\negret_proxy_get_misses_total ${misses}\n`;
  assert.equal(between(text(5, 5), text(5, 5)).hit_ratio, null);
  assert.equal(between(text(5, 5), text(5, 9)).hit_ratio, 0);
  assert.equal(between(text(5, 5), text(8, 6)).hit_ratio, 0.75);
  assert.equal(between(text(9, 3), text(9, 3)).hit_ratio_since_start, 0.75);
  assert.equal(between(text(0, 0), text(0, 0)).hit_ratio_since_start, null);
});

test("quantiles lie within their bucket, and beyond the last bound where they do", () => {
  const buckets = [{ le: 0.001, count: 50 }, { le: 0.002, count: 100 }, { le: Infinity, count: 100 }];
  assert.deepEqual(Egret.quantile(0.5, buckets), { seconds: 0.001, beyond: false });
  assert.deepEqual(Egret.quantile(0.75, buckets), { seconds: 0.0015, beyond: false });
  assert.deepEqual(Egret.quantile(0.99, [{ le: 1, count: 1 }, { le: Infinity, count: 100 }]), { seconds: 1, beyond: true });
  assert.equal(Egret.quantile(0.5, []), null);
  assert.equal(Egret.quantile(0.5, [{ le: 1, count: 0 }, { le: Infinity, count: 0 }]), null);
});

test("latency is that of the interval, not of the whole life", () => {
  const text = (fast, slow) => `${PROXY}egret_proxy_request_seconds_bucket{le="0.001"} ${fast}\negret_proxy_request_seconds_bucket{le="1"} ${fast + slow}\n` +
    `egret_proxy_request_seconds_bucket{le="+Inf"} ${fast + slow}\n`;
  const figures = between(text(1000000, 0), text(1000000, 100));
  assert.ok(figures.p50.seconds > 0.4 && figures.p50.seconds < 0.6, JSON.stringify(figures.p50));
});

test("backends and lanes are told apart, in the order that people count in", () => {
  let text = PROXY;
  for (const backend of ["cache-10", "cache-2"]) {
    text += `egret_proxy_backend_up{backend="${backend}"} ${backend === "cache-2" ? 1 : 0}\n`;
    for (let lane = 0; lane < 12; ++lane) text += `egret_proxy_lane_replies_mode{backend="${backend}",lane="${lane}"} ${lane === 3 ? 1 : 0}\n`;
  }
  const figures = Egret.figures(null, Egret.parse(text, 0));
  assert.deepEqual(figures.backends.map((b) => [b.name, b.up, b.lanes, b.reply_lanes]), [["cache-2", 1, 12, 1], ["cache-10", 0, 12, 1]]);
  assert.deepEqual(figures.lanes_of_backends.slice(0, 12).map((l) => l.lane), [...Array(12).keys()].map(String));
});

test("a backend's figures are sums over its partitions, and each partition's own", () => {
  const text = (n) => BACKEND + [0, 1].map((p) => `egret_backend_ops_total{partition="${p}"} ${n * (p + 1)}\negret_backend_messages_total{partition="${p}"} ${n}\n` +
    `egret_backend_bytes{partition="${p}"} 100\negret_backend_limit_maxbytes{partition="${p}"} 400\n`).join("");
  const figures = between(text(0), text(20));
  assert.deepEqual([figures.kind, figures.ops, figures.ops_per_message, figures.bytes, figures.limit], ["backend", 30, 1.5, 200, 800]);
  assert.deepEqual(figures.partitions.map((p) => [p.partition, p.ops, p.ops_per_message, p.limit]), [["0", 10, 1, 400], ["1", 20, 2, 400]]);
});

test("text that is not Egret's has no kind", () => {
  for (const text of ["", "go_goroutines 7\n", "<!doctype html><p>404</p>", "process_start_time_seconds 5\n"]) assert.equal(Egret.figures(null, Egret.parse(text, 0)).kind, null);
});

test("figures as text: three digits, a unit, a dash for what is not known", () => {
  const cases = [
    [Egret.count_text, [[0, "0"], [0.0001, "<0.001"], [0.25, "0.25"], [7, "7"], [999, "999"], [999.9, `1${THIN}k`], [812345, `812${THIN}k`], [1.5e18, `1.5${THIN}E`], [1e300, `1.0e+282${THIN}E`], [null, "–"], [NaN, "–"]]],
    [Egret.bytes_text, [[0, `0${THIN}B`], [1023, `1023${THIN}B`], [1 << 30, `1${THIN}GiB`], [undefined, "–"]]],
    [Egret.percent_text, [[0, `0${THIN}%`], [1, `100${THIN}%`], [0.99999, `>99.9${THIN}%`], [0.00001, `<0.1${THIN}%`], [0.5, `50.0${THIN}%`], [null, "–"]]],
    [Egret.seconds_text, [[0, "0"], [3e-6, `3${THIN}µs`], [0.00099999, `1${THIN}ms`], [1.5, `1.5${THIN}s`], [null, "–"]]],
    [Egret.latency_text, [[{ seconds: 10, beyond: true }, `>10${THIN}s`], [null, "–"]]],
    [Egret.age_text, [[0, `0${THIN}s`], [59, `59${THIN}s`], [3725, `1${THIN}h 2${THIN}min`], [200000, `2${THIN}d 7${THIN}h`]]],
    [Egret.whole_text, [[0, "0"], [1234567, `1${THIN}234${THIN}567`], [null, "–"]]],
  ];
  for (const [text, rows] of cases) for (const [value, expected] of rows) assert.equal(text(value), expected);
});
