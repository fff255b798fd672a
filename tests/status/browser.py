"""Chromium without a window, and what a page shows, asks for and complains of in it."""
import json, shutil, time

from selenium import webdriver
from selenium.webdriver.chrome.service import Service

PATIENCE_S = 60

# Before the page's own script: each answer that it gets is kept, or made up.
RECORDER = """
  window.seen = [];
  const ask = window.fetch;
  window.fetch = async (...what) => {
    const made_up = sessionStorage.getItem("metrics");
    const answer = made_up === null ? await ask(...what) : new Response(made_up);
    const time = performance.now();
    const text = await answer.clone().text();
    if (answer.ok) { window.seen.push({ time, text }); window.seen.splice(0, window.seen.length - 10); }
    return answer;
  };
"""


class Browser:
    def __init__(self):
        options = webdriver.ChromeOptions()
        options.binary_location = shutil.which("chromium")
        for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--force-prefers-reduced-motion"):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(service=Service(shutil.which("chromedriver")), options=options)
        self.tell("Page.addScriptToEvaluateOnNewDocument", source=RECORDER)
        self.look()

    def close(self):
        self.driver.quit()

    def tell(self, command, **arguments):
        return self.driver.execute_cdp_cmd(command, arguments)

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def look(self, width=1400, height=1000, scheme="light"):
        self.tell("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
        self.tell("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def open(self, address, made_up=None):
        self.driver.get(f"http://{address}/")
        self.make_up(made_up)
        self.driver.get(f"http://{address}/")

    def make_up(self, text):
        """From the next answer on the page gets this for /metrics (None: what the daemon says)."""
        if text is None:
            self.run("sessionStorage.removeItem('metrics')")
        else:
            self.run("sessionStorage.setItem('metrics', arguments[0])", text)

    def wait_for(self, what, script, *arguments):
        end = time.monotonic() + PATIENCE_S
        while not (value := self.run(f"return {script}", *arguments)):
            assert time.monotonic() < end, f"never: {what}\n{self.text('body')}"
            time.sleep(0.1)
        return value

    def text(self, selector):
        return self.run("const found = document.querySelector(arguments[0]); return found && found.innerText", selector)

    def wait_for_text(self, selector, text):
        self.wait_for(f"{text!r} in {selector}", "(document.querySelector(arguments[0]) || { innerText: '' }).innerText.includes(arguments[1])", selector, text)

    def complaints(self):
        """What the console said since the last call."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def asked_for(self):
        """The addresses of all requests since the last call."""
        messages = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        return [message["params"]["request"]["url"] for message in messages if message["method"] == "Network.requestWillBeSent"]

    def screenshot(self, path):
        self.driver.save_screenshot(str(path))
