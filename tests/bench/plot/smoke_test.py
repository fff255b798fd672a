"""`egret-bench plot`: the pictures are XML that needs nothing else, and what they show is what the JSON says.

    smoke_test.py PATH-OF-EGRET-BENCH
"""

import copy
import json
import math
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as xml

BENCH = sys.argv.pop(1)
SVG = "{http://www.w3.org/2000/svg}"


def row(name, contenders, second=None):
    sendings = {"rounds": {"contenders": contenders}}
    return {"name": name, "sendings": {"at once": {"contenders": second}, **sendings} if second else sendings}


def measured(*cpu):
    return {"median": {"cpu_us_per_op": sorted(cpu)[len(cpu) // 2]}, "rounds": [{"cpu_us_per_op": each} for each in cpu]}


def point(connections, **contenders):
    return {"connections": connections,
            "contenders": {name: {"median": dict(zip(("ops_per_s", "p50_us", "p99_us"), figures)), "rounds": []}
                           for name, figures in contenders.items()}}


REPORT = {
    "contenders": [{"name": "Egret", "version": "0.1.0"}, {"name": "memcached", "version": "1.6.18"},
                   {"name": "twemproxy", "version": "0.5.0"}],
    "rounds": 3, "duration_s": 0.5, "cpus": 2,
    "rows": [
        row("first <row> & more", {"Egret": measured(4, 5, 6), "memcached": measured(9, 10, 12), "twemproxy": measured(20, 20, 20)}),
        row("second", {"Egret": measured(3, 3, 3), "memcached": measured(2, 2, 2)}),
        row("cut", {"Egret": measured(60, 70, 80), "memcached": measured(10, 10, 10)}),
        row("nothing to draw", {"Egret": {"median": {}, "rounds": [{"kib_per_connection": 3}]}}),
    ],
    "sweeps": [{"name": "depth 1", "points": [point(1, Egret=(1000, 100, 1000), memcached=(500, 50, 200)),
                                              point(2, Egret=(2000, 200, 4000), memcached=(800, 80, 0))]}],
}


class Picture:
    def __init__(self, text):
        self.text = text
        self.root = xml.fromstring(text)

    def groups(self, name, within=None):
        inside = self.root if within is None else within
        return [each for each in inside.iter(SVG + "g") if name in each.get("class").split()]

    def words(self):
        return [each.text for each in self.root.iter(SVG + "text")]

    @staticmethod
    def ticks(axis, coordinate):
        """A tick's value and its place, from the texts of an axis and the lines beside them."""
        values = [float(each.text.replace(",", "")) for each in axis.iter(SVG + "text")]
        return dict(zip(values, [float(each.get(coordinate)) for each in axis.iter(SVG + "line")]))


class Plot(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)

    def plot(self, report, *arguments):
        file = self.folder / "report.json"
        file.write_text(report if isinstance(report, str) else json.dumps(report))
        return subprocess.run([BENCH, "plot", file, "-o", self.folder / "pictures", *arguments], capture_output=True, text=True,
                              timeout=20)

    def picture(self, name):
        return Picture((self.folder / "pictures" / name).read_text())

    def drawn(self, report=REPORT):
        done = self.plot(report)
        self.assertEqual(done.returncode, 0, done.stderr)
        return self.picture("cpu.svg"), self.picture("throughput-latency.svg")


class Cpu(Plot):
    def setUp(self):
        super().setUp()
        self.cpu, _ = self.drawn()
        self.rows = self.cpu.groups("row")

    @staticmethod
    def bars(picture, row):
        """Of each bar: its width, the ends of its whisker, and the text beside it."""
        for bar in picture.groups("bar", row):
            whisker = bar.find(SVG + "line")
            yield (float(bar.find(SVG + "rect").get("width")), float(whisker.get("x1")), float(whisker.get("x2")), bar.find(SVG + "text").text)

    def test_a_group_for_each_row_and_a_bar_for_each_contender(self):
        self.assertEqual([row.find(SVG + "text").text for row in self.rows], ["first <row> & more", "second", "cut"])
        self.assertEqual([len(self.cpu.groups("bar", row)) for row in self.rows], [3, 2, 2])

    def test_bars_and_whiskers_are_multiples_of_memcacheds_median(self):
        ticks = Picture.ticks(self.cpu.groups("x-axis")[0], "x1")
        zero, one = ticks[0], ticks[1] - ticks[0]
        for row, expected in ((self.rows[0], [(0.5, 0.4, 0.6, "5.00"), (1, 0.9, 1.2, "10.0"), (2, 2, 2, "20.0")]),
                              (self.rows[1], [(1.5, 1.5, 1.5, "3.00"), (1, 1, 1, "2.00")])):
            for (width, least, greatest, text), (ratio, low, high, label) in zip(self.bars(self.cpu, row), expected, strict=True):
                self.assertAlmostEqual(width / one, ratio, places=3)
                self.assertAlmostEqual((least - zero) / one, low, places=3)
                self.assertAlmostEqual((greatest - zero) / one, high, places=3)
                self.assertEqual(text, label)

    def test_a_bar_that_is_too_long_ends_at_the_last_tick_and_says_so(self):
        ticks = Picture.ticks(self.cpu.groups("x-axis")[0], "x1")
        width, _, _, text = next(self.bars(self.cpu, self.rows[2]))
        self.assertAlmostEqual(width, max(ticks.values()) - ticks[0], places=1)
        self.assertEqual(text, "▸ 70.0")

    def test_title_legend_and_axis_are_text(self):
        words = self.cpu.words()
        for text in ("CPU per operation", "Egret 0.1.0", "memcached 1.6.18", "twemproxy 0.5.0"):
            self.assertIn(text, words)
        self.assertTrue(any("a multiple of memcached's; beside the bars: µs/op" in text for text in words))
        self.assertTrue(any("3 rounds of 0.5 s on 2 CPUs" in text for text in words))

    def test_each_contender_has_one_colour_everywhere(self):
        colours = []
        for place, name in enumerate(("Egret", "memcached", "twemproxy")):
            bars = [bar for bar in self.cpu.groups("bar") if bar.find(SVG + "title").text.startswith(name)]
            legend = [each for each in self.cpu.groups("legend") if each.find(SVG + "text").text.startswith(name)]
            self.assertEqual({each.get("class").split()[-1] for each in bars + legend}, {f"c{place}"})
            colours.append({each.find(SVG + "rect").get("fill") for each in bars + legend})
        self.assertEqual([len(each) for each in colours], [1, 1, 1])
        self.assertEqual(len(set.union(*colours)), 3)


class ThroughputLatency(Plot):
    def setUp(self):
        super().setUp()
        _, self.latency = self.drawn()

    @staticmethod
    def places(line):
        return [(float(each.get("cx")), float(each.get("cy"))) for each in line.iter(SVG + "circle")]

    def test_a_line_for_each_contender_and_quantile_with_a_point_for_each_figure(self):
        self.assertEqual(len(self.latency.groups("sweep")), len(REPORT["sweeps"]))
        points = {line.get("class"): len(self.places(line)) for line in self.latency.groups("line")}
        # The second point of memcached has no p99, which a logarithmic axis cannot show.
        self.assertEqual(points, {"line p50 c0": 2, "line p99 c0": 2, "line p50 c1": 1, "line p99 c1": 1})

    def test_points_are_where_the_axes_say(self):
        x_ticks = Picture.ticks(self.latency.groups("x-axis")[0], "x1")
        y_ticks = Picture.ticks(self.latency.groups("y-axis")[0], "y1")
        x_unit = (x_ticks[max(x_ticks)] - x_ticks[0]) / max(x_ticks)
        low, high = min(y_ticks), max(y_ticks)
        y_unit = (y_ticks[high] - y_ticks[low]) / math.log(high / low)
        for quantile, expected in (("p50", [(1000, 100), (2000, 200)]), ("p99", [(1000, 1000), (2000, 4000)])):
            line = next(each for each in self.latency.groups(quantile) if each.get("class") == f"line {quantile} c0")
            for (x, y), (ops, us) in zip(self.places(line), expected, strict=True):
                self.assertAlmostEqual(x, x_ticks[0] + ops * x_unit, places=1)
                self.assertAlmostEqual(y, y_ticks[low] + math.log(us / low) * y_unit, places=1)
            polyline = [tuple(map(float, each.split(","))) for each in line.find(SVG + "polyline").get("points").split()]
            self.assertEqual(polyline, self.places(line))

    def test_axes_have_names_with_units(self):
        words = " ".join(self.latency.words())
        self.assertIn("throughput, ops/s", words)
        self.assertIn("latency of a request, µs", words)


class Both(Plot):
    def test_they_need_nothing_but_themselves(self):
        for picture in self.drawn():
            tags = {each.tag.removeprefix(SVG) for each in picture.root.iter()}
            self.assertLessEqual(tags, {"svg", "title", "desc", "rect", "line", "g", "text", "polyline", "circle"})
            self.assertEqual(re.findall(r"(?:href|src|url|@import|\bon\w+)\s*[=(]", picture.text), [])

    def test_colours_are_plain_attributes_so_that_every_viewer_draws_them(self):
        painted = {"rect": ["fill"], "text": ["fill"], "line": ["stroke"], "polyline": ["stroke"], "circle": ["fill", "stroke"]}
        for picture in self.drawn():
            self.assertEqual(re.findall(r"var\(|<style|style=|currentColor|@media", picture.text), [])
            for each in picture.root.iter():
                for attribute in painted.get(each.tag.removeprefix(SVG), []):
                    self.assertRegex(each.get(attribute, ""), r"^#[0-9a-f]{6}$", xml.tostring(each))
            self.assertEqual({each.get("fill") for each in picture.root.iter(SVG + "polyline")} - {"none"}, set())

    def test_the_background_is_opaque_white_and_covers_everything(self):
        for picture in self.drawn():
            first = picture.root.find(SVG + "rect")
            self.assertEqual(first.get("fill"), "#ffffff")
            self.assertEqual([float(first.get(name)) for name in ("x", "y", "width", "height")],
                             [float(each) for each in picture.root.get("viewBox").split()])
            self.assertNotIn("opacity", picture.text)

    def test_every_piece_is_on_the_plate(self):
        for picture in self.drawn():
            width, height = map(float, picture.root.get("viewBox").split()[2:])
            for each in picture.root.iter():
                for name, limit in (("x", width), ("x1", width), ("x2", width), ("cx", width), ("y", height), ("y1", height), ("cy", height)):
                    self.assertTrue(0 <= float(each.get(name, 0)) <= limit, xml.tostring(each))

    def test_a_row_with_two_ways_of_sending_has_a_group_for_each(self):
        report = copy.deepcopy(REPORT)
        report["rows"] = [row("both", {"Egret": measured(1), "memcached": measured(2)}, {"Egret": measured(3), "memcached": measured(2)})]
        cpu, _ = self.drawn(report)
        self.assertEqual([each.find(SVG + "text").text for each in cpu.groups("row")], ["both, at once", "both, rounds"])
        self.assertEqual([len(cpu.groups("bar", each)) for each in cpu.groups("row")], [2, 2])

    def test_without_memcached_the_first_is_the_measure(self):
        report = copy.deepcopy(REPORT)
        del report["contenders"][1]
        cpu, _ = self.drawn(report)
        ticks = Picture.ticks(cpu.groups("x-axis")[0], "x1")
        widths = [float(bar.find(SVG + "rect").get("width")) / (ticks[1] - ticks[0]) for bar in cpu.groups("bar", cpu.groups("row")[0])]
        self.assertAlmostEqual(widths[0], 1, places=3)
        self.assertAlmostEqual(widths[1], 4, places=3)
        self.assertTrue(any("a multiple of the first bar" in text for text in cpu.words()))

    def test_one_of_them_alone(self):
        self.assertEqual(self.plot(REPORT, "--cpu").returncode, 0)
        self.assertEqual([each.name for each in (self.folder / "pictures").iterdir()], ["cpu.svg"])
        without_sweeps = {**REPORT, "sweeps": []}
        done = self.plot(without_sweeps, "--throughput-latency")
        self.assertEqual(done.returncode, 1)
        self.assertIn("has no figures for that", done.stderr)

    def test_what_is_not_such_json_is_refused(self):
        no_name = copy.deepcopy(REPORT)
        del no_name["rows"][0]["name"]
        words_for_figures = copy.deepcopy(REPORT)
        words_for_figures["rows"][0]["sendings"]["rounds"]["contenders"]["Egret"]["median"]["cpu_us_per_op"] = "five"
        for report in ("", "{", "[]", "{}", no_name, words_for_figures):
            with self.subTest(report=str(report)[:40]):
                done = self.plot(report)
                self.assertEqual(done.returncode, 1)
                self.assertIn("not the JSON of egret-bench compare", done.stderr)
                self.assertEqual(done.stderr.count("\n"), 1)

    def test_a_file_that_is_not_there(self):
        done = subprocess.run([BENCH, "plot", self.folder / "none.json"], capture_output=True, text=True, timeout=20)
        self.assertEqual(done.returncode, 1)
        self.assertIn("cannot read", done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=1)
