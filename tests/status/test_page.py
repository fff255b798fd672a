"""The status page in Chromium, of real daemons under real load: see README.md."""
import os, pathlib, re, signal, sys, tempfile, urllib.request

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from browser import Browser
from daemons import System
from metrics import backend_text, proxy_text

SCREENSHOTS = pathlib.Path(os.environ.get("EGRET_SCREENSHOTS", tempfile.gettempdir()))
THIN = "\u202f"


@pytest.fixture(scope="module")
def daemons():
    with tempfile.TemporaryDirectory(prefix="egret-status-") as folder:
        found = System(folder)
        yield found
        found.close()


@pytest.fixture
def system(daemons):
    yield daemons
    daemons.mend()


@pytest.fixture(scope="module")
def browser():
    found = Browser()
    yield found
    found.close()


def panel(browser, title):
    """A panel's headline, and its figures by name."""
    return browser.run("""
        const node = [...document.querySelectorAll(".panel")].find((panel) => panel.querySelector("h2").textContent === arguments[0]);
        const pairs = [...node.querySelectorAll(".figures > div")].map((row) => [row.querySelector("dt").textContent, row.querySelector("dd").textContent]);
        return [node.querySelector(".headline").textContent, Object.fromEntries(pairs)];""", title)


def rows(browser, title):
    """A table's rows, each by its columns' names."""
    return browser.run("""
        const node = [...document.querySelectorAll(".list")].find((list) => list.getAttribute("aria-label") === arguments[0]);
        const names = [...node.querySelectorAll("thead th")].map((cell) => cell.innerText.replace("\\u200b", ""));
        return [...node.querySelectorAll("tbody tr")].map((row) => Object.fromEntries([...row.children].map((cell, at) => [names[at], cell.textContent])));""", title)


def number(text):
    """813 k/s -> 813000"""
    value, unit = re.match(rf"([\d.]+)(?:{THIN}(k|M|G|µs|ms|s|KiB|MiB|GiB|B|%))?", text.replace(THIN, THIN)).groups()
    return float(value) * {"k": 1e3, "M": 1e6, "G": 1e9, "µs": 1e-6, "ms": 1e-3, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "%": 0.01}.get(unit, 1)


def samples(text):
    return {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if not line.startswith("#")}


def summed(found, name):
    return sum(value for series, value in found.items() if series.split("{")[0] == name)


def live(browser, daemon):
    browser.open(daemon.admin)
    browser.wait_for_text("#word", "live")


# --- the figures


def test_figures_are_those_of_metrics(system, browser):
    live(browser, system.proxy)
    browser.wait_for("requests are answered", "window.seen.length >= 5 && /[1-9]/.test(document.querySelector('.panel .headline').textContent)")
    # In one turn of the page's own thread, so that what is shown belongs to the last answer.
    shown, seen, hits = browser.run("""
        const head = (title) => [...document.querySelectorAll(".panel")].find((panel) => panel.querySelector("h2").textContent === title);
        return [Object.fromEntries(["Requests", "Connections", "Hit ratio", "Traffic", "Messages"].map((title) => [title, head(title).querySelector(".headline").textContent])), window.seen.slice(-2),
                [...head("Hit ratio").querySelectorAll("dd")].map((node) => node.textContent)];""")
    before, now = (samples(one["text"]) for one in seen)
    seconds = (seen[1]["time"] - seen[0]["time"]) / 1000
    growth = lambda name: summed(now, name) - summed(before, name)
    assert number(shown["Requests"]) == pytest.approx(growth("egret_proxy_requests_total") / seconds, rel=0.02)
    assert growth("egret_proxy_requests_total") > 0
    assert number(shown["Connections"]) == now["egret_proxy_connections"] > 0
    found, missed = growth("egret_proxy_get_hits_total"), growth("egret_proxy_get_misses_total")
    assert number(shown["Hit ratio"]) == pytest.approx(found / (found + missed), abs=0.001)
    assert number(hits[0]) == pytest.approx(found / seconds, rel=0.02)
    assert number(shown["Traffic"]) == pytest.approx(growth("egret_proxy_sent_bytes_total") / seconds, rel=0.02)
    assert number(shown["Messages"]) == pytest.approx(growth("egret_proxy_lane_ops_total") / growth("egret_proxy_lane_messages_total"), rel=0.01)
    assert browser.complaints() == []


def test_latency_is_shown_under_load(system, browser):
    live(browser, system.proxy)
    browser.wait_for("a latency", "[...document.querySelectorAll('.panel')].some((panel) => /[µm]?s p99/.test(panel.querySelector('.headline').textContent))")
    figures = panel(browser, "Latency")[1]
    assert 0 < number(figures["p50"].lstrip(">")) <= number(figures["p99"].lstrip(">")) < 10


def test_a_backends_page_shows_its_store(system, browser):
    live(browser, system.backend)
    browser.wait_for("ops", "window.seen.length >= 3 && document.querySelectorAll('tbody tr').length > 0")
    headline, figures = panel(browser, "Memory")
    assert f"of 64{THIN}MiB" in headline and number(figures["items"]) > 0
    assert [row["partition"] for row in rows(browser, "Partitions")] == ["0"]
    assert browser.complaints() == []


# --- what goes wrong


def test_a_dead_backend_is_shown_and_comes_back(system, browser):
    live(browser, system.proxy)
    browser.wait_for_text("tbody", "● up")
    assert rows(browser, "Backends")[0]["backend"] == "cache-a"
    system.backend.kill()
    browser.wait_for_text("tbody", "✕ down")
    browser.wait_for_text(".list .bad", "1 of 1 not up: cache-a")
    system.backend.start()
    browser.wait_for_text("tbody", "● up")


def test_a_dead_proxy_has_no_figures_and_comes_back(system, browser):
    live(browser, system.proxy)
    browser.wait_for("figures", "/[0-9]/.test(document.querySelector('.panel .headline').textContent)")
    system.proxy.kill()
    browser.wait_for_text("#state", "no answer")
    shown = browser.run("return [...document.querySelectorAll('.headline > span, .figures dd')].map((node) => node.textContent)")
    assert set(shown) == {"–"} and rows(browser, "Backends") == []
    system.proxy.start()
    browser.wait_for_text("#state", "restarted")
    browser.wait_for("figures again", "/[0-9]/.test(document.querySelector('.panel .headline').textContent)")
    assert all("ERR_CONNECTION" in said or "ERR_EMPTY_RESPONSE" in said or "ERR_INCOMPLETE" in said for said in browser.complaints())


def test_a_stalled_proxy_has_no_figures(system, browser):
    live(browser, system.proxy)
    system.proxy.kill(signal.SIGSTOP)
    browser.wait_for_text("#state", "stalled")
    assert set(browser.run("return [...document.querySelectorAll('.headline > span')].map((node) => node.textContent)")) == {"–"}
    system.proxy.kill(signal.SIGCONT)
    browser.wait_for_text("#word", "live")
    browser.complaints()


@pytest.mark.parametrize("text", ["", "<!doctype html><h1>Sign in</h1>", "go_goroutines 5\n"])
def test_an_answer_of_somebody_else_is_no_figure(system, browser, text):
    browser.open(system.proxy.admin, text)
    browser.wait_for_text("#state", "answered without Egret's metrics")


# --- what it may do


def test_it_asks_its_own_origin_for_metrics_and_nothing_else(system, browser):
    browser.asked_for()
    live(browser, system.proxy)
    browser.wait_for("some answers", "window.seen.length >= 3")
    origin = f"http://{system.proxy.admin}"
    asked = [url for url in browser.asked_for() if not url.startswith("data:")]
    assert set(asked) == {f"{origin}/", f"{origin}/metrics"}


def test_the_policy_is_sent_and_lets_nothing_else_run(system, browser):
    for daemon in (system.proxy, system.backend):
        with urllib.request.urlopen(f"http://{daemon.admin}/") as answer:
            assert answer.headers["Content-Security-Policy"].startswith("default-src 'none'; script-src 'sha256-")
            assert "utf-8" in answer.headers["Content-Type"]
    live(browser, system.proxy)
    browser.run("""
        window.violations = [];
        document.addEventListener("securitypolicyviolation", (event) => window.violations.push(event.effectiveDirective));
        const script = document.createElement("script");
        script.textContent = "window.foreign = true";
        document.body.append(script);
        document.body.insertAdjacentHTML("beforeend", "<img src=x onerror='window.foreign = true'><p style='color: red'>");""")
    browser.wait_for("violations", "window.violations.length >= 4")
    assert set(browser.run("return window.violations")) == {"img-src", "script-src-attr", "script-src-elem", "style-src-attr"}
    assert browser.run("return window.foreign === undefined")
    browser.complaints()


def test_names_of_backends_are_text(system, browser):
    name = '<img src=x onerror=window.foreign=1>&amp;"'
    browser.open(system.proxy.admin, proxy_text(1).replace("cache-0", name.replace('"', '\\"')))
    browser.wait_for_text("tbody", name)
    assert browser.run("return [window.foreign === undefined, document.images.length]") == [True, 0]


# --- states, sizes, colours


def test_just_started_it_waits_for_a_second_answer(system, browser):
    browser.open(system.proxy.admin, proxy_text(1))
    browser.wait_for_text("#word", "live")
    browser.wait_for("the first answer alone", "window.seen.length >= 1")
    assert panel(browser, "Connections")[0].startswith("12 of")


def test_without_load_rates_are_zero_and_quotients_are_dashes(system, browser):
    browser.open(system.proxy.admin, proxy_text(5))
    browser.wait_for("two answers", "document.querySelector('.panel .headline').textContent.startsWith('0')")
    assert panel(browser, "Requests")[1]["get"] == "0/s" and panel(browser, "Requests")[1]["touch"] == "–"
    assert panel(browser, "Hit ratio")[0].startswith("–") and panel(browser, "Latency")[0].startswith("–")
    assert "no requests" in browser.text("[aria-label=Latency] .empty")


def huge(text):
    return re.sub(r" (\d{3,})$", r" \1e13", text, flags=re.M)


STATES = {
    "64-backends": lambda tick: proxy_text(tick, backends=64),
    "64-partitions": lambda tick: backend_text(tick, partitions=64),
    "huge": lambda tick: huge(proxy_text(tick)),
    "bare": lambda tick: "egret_proxy_build_info 1\n",
}


@pytest.mark.parametrize("state", STATES)
def test_nothing_overflows(system, browser, state):
    browser.open(system.proxy.admin, STATES[state](1))
    for tick in range(2, 4):
        seen = browser.run("return window.seen.length")
        browser.make_up(STATES[state](tick))
        browser.wait_for("the next answer", f"window.seen.length > {seen} + 1")
    browser.run("const fold = document.querySelector('details'); if (fold) fold.open = true")
    browser.wait_for("rows", "document.querySelectorAll('tbody tr').length >= arguments[0]", 64 if state.startswith("64") else 0)
    for width in (320, 390, 768, 1280, 1400, 1920, 2560):
        browser.look(width, 1000)
        assert browser.run("return document.documentElement.scrollWidth") <= width, "the page scrolls sideways"
        assert overflowing(browser) == [], width
    browser.look()
    assert browser.complaints() == []


def overflowing(browser):
    return browser.run("""
        return [...document.querySelectorAll(".panel .top > *, .figures > div > *")].filter((node) => {
          const [own, frame] = [node.getBoundingClientRect(), node.closest(".panel").getBoundingClientRect()];
          return own.right > frame.right + 1 || node.scrollWidth > node.clientWidth + 1 && node.clientWidth > 0;
        }).map((node) => node.textContent)""")


def luminance(colour):
    channels = [int(colour[at:at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_text_and_lines_have_contrast(system, browser, scheme):
    browser.look(scheme=scheme)
    live(browser, system.proxy)
    colour = lambda name: browser.run("return getComputedStyle(document.documentElement).getPropertyValue(arguments[0]).trim()", name)
    for background in ("--paper", "--rows"):
        for name, least in [("--ink", 7), ("--soft", 4.5), ("--good", 4.5), ("--warn", 4.5), ("--bad", 4.5), *((f"--{line}", 3) for line in "abcdef")]:
            brighter, darker = sorted((luminance(colour(name)), luminance(colour(background))), reverse=True)
            assert (brighter + 0.05) / (darker + 0.05) >= least, (name, background)


def test_the_pointer_shows_the_figures_of_then(system, browser):
    browser.open(system.proxy.admin, proxy_text(1).replace("connections 12", "connections 11"))
    browser.wait_for("two answers", "window.seen.length >= 2")
    browser.make_up(proxy_text(1))
    browser.wait_for("later ones", "window.seen.length >= 7 && window.seen.slice(-2).every((one) => one.text.includes('connections 12'))")
    x, y = browser.run("""
        const box = document.querySelector(".plot svg").getBoundingClientRect();
        const age = performance.now() - window.seen[0].time;
        return [box.right - box.width * age / 300000, box.top + 20];""")
    browser.tell("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
    browser.wait_for_text("[aria-label=Connections] .headline", "11 of")
    assert "−" in browser.text(".plot + .time")
    browser.tell("Input.dispatchMouseEvent", type="mouseMoved", x=1, y=1)
    browser.wait_for_text("[aria-label=Connections] .headline", "12 of")


def test_tables_are_sorted_by_keyboard(system, browser):
    browser.look()
    browser.open(system.proxy.admin, proxy_text(1))
    browser.wait_for_text("tbody", "cache-2")
    names = lambda: [row["backend"] for row in rows(browser, "Backends")]
    assert names() == ["cache-0", "cache-1", "cache-2"]
    assert [row["by"] for row in rows(browser, "Backends")] == ["rdma", "–", "rdma"]
    browser.run("document.querySelectorAll('thead button')[4].focus()")  # sessions, of which the one that is down has none
    browser.tell("Input.dispatchKeyEvent", type="keyDown", key="Enter", code="Enter", windowsVirtualKeyCode=13, text="\r")
    browser.tell("Input.dispatchKeyEvent", type="keyUp", key="Enter", code="Enter", windowsVirtualKeyCode=13)
    browser.wait_for("the new order", "document.querySelectorAll('thead th')[4].getAttribute('aria-sort') === 'descending'")
    assert names() == ["cache-0", "cache-2", "cache-1"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("shape,width,height", [("wide", 1280, 900), ("narrow", 390, 1800)])
def test_screenshots(system, browser, scheme, shape, width, height):
    for name, daemon in (("proxy", system.proxy), ("backend", system.backend)):
        browser.look(width, height, scheme)
        live(browser, daemon)
        browser.wait_for("a short history", "window.seen.length >= 4")
        path = SCREENSHOTS / f"{name}-{shape}-{scheme}.png"
        browser.screenshot(path)
        assert path.stat().st_size > 10000
