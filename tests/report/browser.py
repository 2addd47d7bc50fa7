"""Chromium without a window, driven over its debugging protocol with Python's own library: a WebSocket of a hundred lines."""
import base64
import json
import os
import shutil
import socket
import struct
import subprocess
import tempfile
import time
import urllib.request

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


def find_chromium():
    return os.environ.get("CHROMIUM") or next((path for path in map(shutil.which, NAMES) if path), None)


class Socket:
    """The client's side of a WebSocket (RFC 6455), texts only."""

    def __init__(self, url):
        host, path = url.removeprefix("ws://").split("/", 1)
        name, port = host.split(":")
        self.link = socket.create_connection((name, int(port)), timeout=60)
        key = base64.b64encode(os.urandom(16)).decode()
        self.link.sendall((f"GET /{path} HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                           f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n").encode())
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += self.take(1)
        if b" 101 " not in head.split(b"\r\n")[0]:
            raise OSError(f"no WebSocket: {head[:100]}")

    def take(self, count):
        parts = []
        while count:
            part = self.link.recv(min(count, 1 << 20))
            if not part:
                raise OSError("Chromium closed the connection")
            parts.append(part)
            count -= len(part)
        return b"".join(parts)

    def send(self, text):
        data, mask = text.encode(), os.urandom(4)
        size = len(data)
        head = bytes([0x81]) + (bytes([0x80 | size]) if size < 126 else bytes([0xFE]) + struct.pack(">H", size) if size < 65536 else bytes([0xFF]) + struct.pack(">Q", size))
        self.link.sendall(head + mask + bytes(byte ^ mask[i & 3] for i, byte in enumerate(data)))

    def receive(self):
        whole = b""
        while True:
            first, second = self.take(2)
            size = second & 0x7F
            if size > 125:
                size = struct.unpack(">H" if size == 126 else ">Q", self.take(2 if size == 126 else 8))[0]
            data, kind = self.take(size), first & 15
            if kind == 9:  # a ping: no answer is needed on a connection this short
                continue
            if kind == 8:
                raise OSError("Chromium closed the connection")
            whole += data
            if first & 0x80:
                return whole.decode()


class Browser:
    """One page at a time. `problems` has what the console complained about, and exceptions that nothing caught."""

    def __init__(self, program):
        self.folder = tempfile.mkdtemp(prefix="tessera-browser-")
        options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--remote-debugging-port=0", "--no-first-run",
                   "--remote-allow-origins=*", f"--user-data-dir={self.folder}", "--force-device-scale-factor=1", "about:blank"]
        self.process = subprocess.Popen([program, *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.count, self.events = 0, []
        self.problems, self.requests = [], []
        port = self.port()
        pages = json.load(urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list", timeout=60))
        self.socket = Socket(next(page["webSocketDebuggerUrl"] for page in pages if page["type"] == "page"))
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def port(self):
        file, deadline = os.path.join(self.folder, "DevToolsActivePort"), time.monotonic() + 90
        while time.monotonic() < deadline:
            if os.path.exists(file) and open(file).read().count("\n"):
                return int(open(file).read().split("\n")[0])
            if self.process.poll() is not None:
                break
            time.sleep(0.1)
        raise OSError("Chromium does not start")

    def note(self, message):
        kind, more = message["method"], message["params"]
        if kind == "Runtime.exceptionThrown":
            about = more["exceptionDetails"]
            self.problems.append(about.get("exception", {}).get("description") or about["text"])
        elif kind == "Runtime.consoleAPICalled" and more["type"] in ("error", "warning", "assert"):
            self.problems.append(" ".join(str(each.get("value", each.get("description"))) for each in more["args"]))
        elif kind == "Log.entryAdded" and more["entry"]["level"] in ("error", "warning"):
            self.problems.append(more["entry"]["text"])
        elif kind == "Network.requestWillBeSent":
            self.requests.append(more["request"]["url"])
        self.events.append(kind)

    def call(self, method, **parameters):
        self.count += 1
        self.socket.send(json.dumps({"id": self.count, "method": method, "params": parameters}))
        while True:
            message = json.loads(self.socket.receive())
            if message.get("id") == self.count:
                if "error" in message:
                    raise OSError(f"{method}: {message['error']}")
                return message["result"]
            if "method" in message:
                self.note(message)

    def run(self, script):
        """The value of an expression in the page."""
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise ValueError(result["exceptionDetails"].get("exception", {}).get("description", result["exceptionDetails"]["text"]))
        return result["result"].get("value")

    def open(self, path, width=1280, height=900):
        """A file, or an address of this machine."""
        self.problems.clear()
        self.requests.clear()
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        url = path if str(path).startswith("http:") else f"file://{os.path.realpath(path)}"
        self.call("Page.navigate", url=url)
        deadline = time.monotonic() + 120
        while self.run("document.readyState") != "complete" or self.run("location.protocol") != url.split("/")[0]:
            if time.monotonic() > deadline:
                raise OSError(f"{path} does not load")
            time.sleep(0.05)
        self.settle()

    def settle(self):
        """Until two frames were drawn."""
        self.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")

    def colours(self, scheme):
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.settle()

    def mouse(self, kind, x, y, **more):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def press(self, key):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, **({"text": key} if len(key) == 1 and kind == "keyDown" else {}))
        self.settle()

    def picture(self, path, width=1280):
        """The whole page."""
        height = min(16000, int(self.run("document.documentElement.scrollHeight")))
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip={"x": 0, "y": 0, "width": width, "height": height, "scale": 1})
        with open(path, "wb") as file:
            file.write(base64.b64decode(data["data"]))

    def close(self):
        try:
            self.call("Browser.close")
        except OSError:
            pass
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
