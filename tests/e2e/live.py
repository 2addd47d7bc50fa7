"""live.py PROGRAM STUB: the page of --live and `tessera top`. STUB is the program over a library that works until it is stopped.

Hostile visitors: a foreign Host header, paths that lead elsewhere, other methods, endless headers, a thousand connections,
readers that never read. Each is refused or bounded, and the job ends as it would without them.
"""
import contextlib
import json
import os
import re
import resource
import select
import signal
import socket
import subprocess
import sys
import time

import numpy as np

from support import Bench, interrupt, picture, read_safetensors, skip, to_integers, write_config, write_png

KEYS = {"program", "version", "verb", "pid", "unit", "done", "total", "share", "seconds", "seconds_left", "file", "file_at",
        "file_count", "held_bytes", "peak_bytes", "planned_bytes", "loss", "psnr_db"}
CONNECTIONS = 1000


@contextlib.contextmanager
def running(bench, *words, **popen):
    """A job with a page on a free port. Gives the process and the port."""
    process = bench.start(*words, "--live", "0", stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, **popen)
    try:
        line = process.stderr.readline()
        said = re.search(r"live page at http://127\.0\.0\.1:(\d+)/", line)
        bench.check(said is not None, f"the port is printed: {line!r}")
        yield process, int(said[1])
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        process.stderr.close()


def connect(port, timeout=20):
    return socket.create_connection(("127.0.0.1", port), timeout)


def ask(port, path="/state.json", method="GET", host=None, more=""):
    """Status, headers and body of an answer; status 0 when there was none."""
    host = f"127.0.0.1:{port}" if host is None else host
    text = f"{method} {path} HTTP/1.1\r\n" + (f"Host: {host}\r\n" if host else "") + f"{more}\r\n"
    data = b""
    try:
        with connect(port) as to:
            to.sendall(text.encode("latin-1"))
            while part := to.recv(65536):
                data += part
    except OSError:
        pass
    head, _, body = data.partition(b"\r\n\r\n")
    status = int(head.split()[1]) if head.startswith(b"HTTP/1.1 ") else 0
    return status, head.decode("latin-1").lower(), body


def check_answers(bench, port, process):
    status, head, body = ask(port)
    state = json.loads(body)
    bench.check(status == 200 and "application/json" in head and state.keys() == KEYS, f"the state: {state}")
    bench.check(state["verb"] == "denoise" and state["pid"] == process.pid and state["unit"] == "pixels" and
                state["planned_bytes"] == 1 << 20, "the state is that of the job")
    status, head, body = ask(port, "/")
    bench.check(status == 200 and "text/html" in head and b"<title>tessera</title>" in body, "the page")
    bench.check("content-security-policy: default-src 'none'" in head and "nosniff" in head and "no-store" in head and
                "access-control" not in head, f"the page's headers: {head}")
    bench.check(b"http://" not in body and b"https://" not in body and b"innerHTML" not in body, "the page loads nothing from elsewhere")
    bench.check(ask(port, host=f"localhost:{port}")[0] == 200, "localhost is this machine")


def check_refusals(bench, port):
    for host in ("evil.example", f"evil.example:{port}", "127.0.0.1", f"127.0.0.1:{port + 1}", f"127.0.0.1:{port}.evil.example", "", f"user@127.0.0.1:{port}"):
        status, _, body = ask(port, host=host)
        bench.check(status in (400, 403) and b"planned" not in body, f"Host {host!r} is refused: {status}")
    for path in ("/../../etc/passwd", "/..%2f..%2fetc%2fpasswd", "/%2e%2e/%2e%2e/etc/passwd", "//etc/passwd", "/state.json/../../etc/passwd",
                 "/state.json%00.html", "/favicon.ico", "/STATE.JSON", "http://evil.example/"):
        status, _, body = ask(port, path)
        bench.check(status in (400, 403, 404) and b"root:" not in body, f"path {path} is refused: {status}")
    for method in ("POST", "PUT", "DELETE", "HEAD", "OPTIONS", "TRACE", "BREW"):
        status, _, body = ask(port, method=method)
        bench.check(status in (400, 405, 501) and b"planned" not in body, f"{method} is refused: {status}")
    status, _, _ = ask(port, more="X: " + "a" * 100000 + "\r\n")
    bench.check(status in (0, 400, 413, 414, 431), f"endless headers are refused: {status}")
    status, _, _ = ask(port, method="POST", more="Content-Length: 1000000000\r\n")
    bench.check(status in (400, 405, 413), f"a large upload is refused: {status}")
    bench.check(ask(port)[0] == 200, "the page still answers")
    try:  # another address of this machine
        address = socket.gethostbyname(socket.gethostname())
    except OSError:
        address = "127.0.0.2"
    if address != "127.0.0.1":
        with socket.socket() as other:
            other.settimeout(5)
            bench.check(other.connect_ex((address, port)) != 0, f"{address} is not served")


def check_crowd(bench, port, process):
    """A thousand connections that say nothing, half a request or everything but read nothing."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < CONNECTIONS + 100:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, CONNECTIONS + 100), hard))
    crowd, connected = [], 0
    for i in range(CONNECTIONS):
        one = socket.socket()
        one.setblocking(False)
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
        one.connect_ex(("127.0.0.1", port))
        crowd.append(one)
    for i, one in enumerate(crowd):
        try:
            if i % 3:
                one.send(b"GET / HTTP/1.1\r\n" if i % 3 == 1 else f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
            connected += 1
        except OSError:
            pass
    open_files = len(os.listdir(f"/proc/{process.pid}/fd"))
    bench.check(open_files < 100, f"{connected} of {CONNECTIONS} connections were taken; the program has {open_files} open files")
    bench.check(process.poll() is None, "the job goes on")
    deadline = time.monotonic() + 60
    answered = 0
    while answered != 200 and time.monotonic() < deadline:  # silent ones time out and make room
        answered = ask(port)[0]
    for one in crowd:
        one.close()
    bench.check(answered == 200, "the page answers while the crowd waits, or after it timed out")


def check_slow(bench, port):
    """Connections that never ask are closed by the server."""
    slow = [connect(port) for _ in range(5)]
    slow[1].sendall(b"GET /sta")
    deadline = time.monotonic() + 60
    closed = set()
    while len(closed) < len(slow) and time.monotonic() < deadline:
        for one in select.select([s for s in slow if s not in closed], [], [], 1)[0]:
            with contextlib.suppress(OSError):
                if one.recv(1000):
                    continue
            closed.add(one)
    bench.check(len(closed) == len(slow), f"{len(closed)} of {len(slow)} silent connections were closed")
    for one in slow:
        one.close()


def check_visitors(bench, stub):
    bench.path("in.png").touch()
    with running(stub, "denoise", bench.path("in.png"), bench.path("out.png"), "--quiet", env={"STUB": "poll"}) as (process, port):
        check_answers(bench, port, process)
        check_refusals(bench, port)
        taken = bench.run("denoise", bench.path("in.png"), bench.path("x.png"), "--live", str(port))
        bench.check_refused(taken, 1, f"--live {port}", "in use")
        check_slow(bench, port)
        check_crowd(bench, port, process)
        begun = time.monotonic()
        idle = [connect(port) for _ in range(3)]
        interrupt(process)
        bench.check(process.wait(60) == 128 + signal.SIGINT, f"the job ends as always, {time.monotonic() - begun:.1f} s after it was stopped")
        for one in idle:
            one.close()
    bench.check(ask(port)[0] == 0, "the page ends with the job")


def check_top(bench, stub):
    runtime = bench.path("runtime")
    runtime.mkdir(mode=0o700)
    surroundings = {"XDG_RUNTIME_DIR": str(runtime)}
    bench.check_refused(bench.run("top", env=surroundings), 1, "top", "--live")
    with running(stub, "denoise", bench.path("in.png"), bench.path("out.png"), "--quiet", env={"STUB": "poll", **surroundings}) as (process, port):
        for words in ((), (str(port),), (f"http://127.0.0.1:{port}/",), (f"http://localhost:{port}",)):
            told = bench.run("top", "--once", *words, env=surroundings)
            bench.check(told.status == 0 and told.record["pid"] == process.pid, f"top {words}: {told}")
        shown = bench.start("top", str(port), stdout=subprocess.PIPE, text=True)
        bench.check("tessera denoise, process" in shown.stdout.readline(), "top shows the job")
        (runtime / "tessera-live-1x").write_text("junk")
        (runtime / "tessera-live-99999999").write_text("1\n")
        bench.check(bench.run("top", "--once", env=surroundings).status == 0, "files of other or ended programs do not matter")
        interrupt(process)
        process.wait(60)
        bench.check(shown.wait(60) == 0, "top ends with the job")
        shown.stdout.close()
    bench.check(not (runtime / f"tessera-live-{process.pid}").exists(), "the job's file is removed")
    bench.check_refused(bench.run("top", str(port)), 1, "top", "no job answers")
    for word in ("0", "http://evil.example:80/", "x", "70000", "80x"):
        bench.check_refused(bench.run("top", word), 2, "top", word)


def check_training(bench):
    """A real job, watched to its end: progress and loss arrive, and the weights are those of a run that nobody watched."""
    bench.path("images").mkdir()
    for seed in range(3):
        write_png(bench.path("images") / f"{seed}.png", to_integers(picture(56, 64, 3, seed) * 0.8, np.uint8))
    keys = {"network": {"architecture": "dncnn", "widths": [16], "depth": 5, "norm": "batch"}, "batch": 4, "steps": 400,
            "data": {"folders": ["images"], "crop": 24, "sigma": 0.1, "workers": 2}, "optimizer": {"rate": 3e-3}, "device": "cpu"}
    paths = {name: write_config(bench.path(f"{name}.json"), {**keys, "output": f"{name}.safetensors"}, {}) for name in ("alone", "seen")}
    bench.record("train", paths["alone"])
    states = []
    with running(bench, "train", paths["seen"], "--quiet") as (process, port):
        while process.poll() is None:
            status, _, body = ask(port)
            if status == 200:
                states.append(json.loads(body))
            time.sleep(0.02)
        bench.check(process.returncode == 0, "the job ends as always")
    watched = [s for s in states if s["loss"] is not None]
    bench.check(len(watched) > 1 and all(0 < s["loss"] < 10 and s["unit"] == "steps" and s["total"] == 400 for s in watched),
                f"{len(watched)} states with a loss")
    done = [s["done"] for s in states]
    bench.check(done == sorted(done) and len(set(done)) > 1, "progress goes on")
    over = [s for s in watched if not s["held_bytes"] <= s["peak_bytes"] <= s["planned_bytes"]]
    bench.check(not over and any(s["held_bytes"] for s in watched), f"memory stays within the plan: {over[:1]}")
    one, two = (read_safetensors(bench.path(f"{name}.safetensors")) for name in paths)
    bench.check(one.keys() == two.keys() and all(np.array_equal(one[k], two[k]) for k in one), "the weights are the same")


def main():
    bench, stub = Bench(sys.argv[1]), Bench(sys.argv[2])
    bench.path("in.png").touch()
    tried = stub.run("denoise", bench.path("in.png"), bench.path("out.png"), "--live", "0")
    if tried.status and "libmicrohttpd" in tried.err:
        skip(tried.err.strip())
    check_visitors(bench, stub)
    check_top(bench, stub)
    check_training(bench)
    stub.failures += bench.failures
    bench.failures = stub.failures
    bench.finish()


main()
