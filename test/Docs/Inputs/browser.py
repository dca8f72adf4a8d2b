"""A browser without a screen, for tests of the site: Chromium, which is told what to do over a pipe (DevTools protocol).

    with Browser() as browser:
        browser.open("file:///site/index.html", width=400)
        browser.evaluate("document.title")
        browser.type("all_gather"); browser.press("Enter")
"""

import base64
import json
import os
import shutil
import subprocess
import tempfile
import time


class Browser:
    KEYS = {"Enter": ("\r", 13), "Escape": ("", 27), "ArrowDown": ("", 40), "ArrowUp": ("", 38), "/": ("/", 191)}

    def __enter__(self):
        self.folder = tempfile.mkdtemp()
        commands, self.commands = os.pipe()
        self.answers, answers = os.pipe()
        # The protocol has descriptors 3 and 4. The sandbox needs what a container may lack.
        program = ["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                   "--disable-background-networking", "--disable-component-update", "--remote-debugging-pipe",
                   f"--user-data-dir={self.folder}", "about:blank"]
        redirect = f'exec "$@" 3<&{commands} 4>&{answers}'
        self.process = subprocess.Popen(["bash", "-c", redirect, "browser", *program], pass_fds=(commands, answers),
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(commands)
        os.close(answers)
        self.buffer, self.count, self.session = b"", 0, None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        return self

    def __exit__(self, *error):
        self.session = None
        self.call("Browser.close")
        self.process.wait(timeout=30)
        os.close(self.commands)
        os.close(self.answers)
        shutil.rmtree(self.folder, ignore_errors=True)

    def call(self, method, **params):
        self.count += 1
        message = {"id": self.count, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.commands, json.dumps(message).encode() + b"\0")
        while True:
            while b"\0" not in self.buffer:
                piece = os.read(self.answers, 1 << 16)
                if not piece:
                    raise RuntimeError("the browser ended")
                self.buffer += piece
            text, _, self.buffer = self.buffer.partition(b"\0")
            answer = json.loads(text)
            if answer.get("id") == self.count:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]

    def evaluate(self, script):
        answer = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{script}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def wait(self, script):
        """Until an expression is true. A page that goes to another one meanwhile answers with an error."""
        end = time.monotonic() + 60
        while time.monotonic() < end:
            try:
                if self.evaluate(f"Boolean({script})"):
                    return
            except RuntimeError:
                pass
            time.sleep(0.02)
        raise RuntimeError(f"never true: {script}")

    def open(self, url, width=1280, height=900, dark=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.call("Page.navigate", url="about:blank")  # else another anchor of the same page loads nothing
        self.call("Page.navigate", url=url)
        self.wait(f"location.href !== 'about:blank' && document.readyState === 'complete'")

    def type(self, text):
        for character in text:
            self.call("Input.dispatchKeyEvent", type="char", text=character)

    def press(self, key):
        text, code = self.KEYS[key]
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code, **({"text": text} if text and kind == "keyDown" else {}))

    def click(self, selector):
        script = f"(() => {{ const r = document.querySelector({json.dumps(selector)}).getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; }})()"
        x, y = self.evaluate(script)
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def take_screenshot(self, file):
        with open(file, "wb") as out:
            out.write(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))
