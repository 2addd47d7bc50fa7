"""cli_jobs.py PROGRAM STUB: standard output that fails, signals, notes and progress, the file of the record."""
import fcntl
import json
import os
import pty
import shutil
import signal
import stat
import struct
import sys
import termios
import time

from support import Bench, dncnn, leftovers, np, picture, to_integers, write_png, write_safetensors

bench, stub = Bench(sys.argv[1]), Bench(sys.argv[2])
check, folder = bench.check, bench.folder
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

# --- standard output -------------------------------------------------------------------------------------------------

prints = [("help",), ("--help",), ("--version",), ("help", "reconstruct"), ("help", "--man"), ("help", "--completion", "bash"), ("info",),
          ("denoise", "--help"), ("info", "--json", "-"), ("denoise", "a", "b"), ("bench", "size"), ("convert", "a", "b")]
for words in prints:
    with open("/dev/full", "w") as full:
        stub.check_refused(stub.run(*words, stdout=full), 1, "standard output", "No space left")
    reading, writing = os.pipe()
    os.close(reading)
    stub.check_refused(stub.run(*words, stdout=writing), 1, "standard output", "Broken pipe")
    os.close(writing)
    stub.check_refused(stub.run(*words, preexec_fn=lambda: os.close(1)), 1, "standard output")
result = stub.run("denoise", "a", "b", "--quiet", preexec_fn=lambda: os.close(1))
check(result.status == 0 and not result.err, f"nothing to print, nothing fails: {result}")
image, out = folder / "image.npy", folder / "out.npy"
model = write_safetensors(folder / "net.safetensors", dncnn())
np.save(image, picture(20, 20))
result = bench.run("denoise", image, out, "--model", model, preexec_fn=lambda: (os.close(0), os.close(1), os.close(2)))
check(result.status == 1 and np.load(out).shape == (20, 20, 3), "closed standard files: messages do not go into the image")
stub.check_refused(stub.run("denoise", "a", "b", env={"STUB": "no-memory"}), 1, "tessera: no memory")

# --- a rank is lost, and the job fails because of it: one line, of whoever notices first -----------------------------------

for behaviour, line in (("lost", "tessera: rank 1 (host, pid 1) has died; the job ends\n"), ("elsewhere", ""), ("failed", "tessera: out.npy: cannot take its final name\n")):
    result = stub.run("denoise", "a", "b", "--quiet", env={"STUB": behaviour})
    check(result.status == 1 and result.err == line, f"a lost rank, {behaviour}: {result}")

# --- notes and progress ------------------------------------------------------------------------------------------------

talk = {"env": {"STUB": "talk"}}
result = stub.run("denoise", "a", "b", **talk)
check("tessera: note: a warning\n" in result.err and "detail" not in result.err, "warnings are printed")
lines = [line for line in result.lines if "%" in line]
check([line.split("  ")[-1] for line in lines] == ["1/2 first.png", "2/2 second?[31m.png", "2/2 second?[31m.png"],
      f"a plain line every ten seconds, with the file: {lines}")
slow = stub.run("denoise", "a", "b", env={**talk["env"], "STUB_SLOW": "1"}).err
check("0.003 megapixels a second" in slow, f"a slow job has a rate too: {slow}")
check("note: a detail" in stub.run("denoise", "a", "b", "--verbose", **talk).err, "--verbose prints details")
for words in (("--quiet",), ("--quiet", "--verbose")):
    check(not stub.run("denoise", "a", "b", *words, **talk).err, f"{words}: nothing")

# --- settings in the library's texts become options; names of files stay ------------------------------------------------

settings = {"env": {"STUB": "settings"}}
result = stub.run("denoise", "a", "b", **settings)
check(result.status == 2 and result.out == "stopped by --max-seconds\n", f"the summary names options: {result.out}")
check(result.err == "tessera: note: --threads 9: `line` stays, --sigma and `sigma\n"
      "tessera: --memory 9M is too little; --memory 12M would do, or a smaller --tile`\n", f"so do notes and errors: {result.err}")
record = json.loads(stub.run("denoise", "a", "b", "--json", "-", **settings).out)
check(record.pop("command_line") == ["tessera", "denoise", "a", "b", "--json", "-"], "the record tells the command")
check(record == {"output": "`sigma`.png", "plan": {"reason": "\"--memory\", --skip-existing"},
                 "files": [{"input": "a \"error\": `halo`", "error": "--json x"}, {"error": None, "input": "`halo`"}]},
      f"and reasons and errors in the record: {record}")


def on_terminal(columns):
    outer, inner = pty.openpty()
    fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = stub.start("denoise", "a", "b", stdout=inner, stderr=inner, **talk)
    os.close(inner)
    text = b""
    while True:
        try:
            part = os.read(outer, 4096)
        except OSError:
            part = b""
        if not part:
            break
        text += part
    process.wait()
    os.close(outer)
    return text.decode().replace("\r\n", "\n")


for columns in (20, 60, 200):
    text = on_terminal(columns)
    parts = [part for line in text.split("\n") for part in line.split("\r") if "%" in part]
    check(parts and max(map(len, parts)) < columns and text.count("\r") == 30, f"{columns} columns: one line, cut: {parts[-3:]}")
    check(text.startswith("tessera: note: a warning\n") and text.endswith("\na summary\n"), f"{columns} columns: other lines have their own")
check("2/2 second?[31m.png" in text and "10 s left" in text and "1.00 megapixels a second" in text, "what the line says")

# --- signals -----------------------------------------------------------------------------------------------------------


def default_signals():
    for number in SIGNALS:
        signal.signal(number, signal.SIG_DFL)


def started(runner, until, *words, env=None):
    """A job that has begun its work."""
    process = runner.start(*words, env=env, stdout=open(folder / "told", "w"), stderr=open(folder / "errors", "w"), preexec_fn=default_signals)
    deadline = time.monotonic() + 60
    while not until() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.005)
    return process


mark, record = folder / "mark.tmp", folder / "record.json"
for number in SIGNALS:
    env = {"STUB": "poll", "STUB_TEMP": str(mark)}
    process = started(stub, mark.exists, "denoise", "a", "b", "--json", record, env=env)
    process.send_signal(number)
    status, errors = process.wait(60), (folder / "errors").read_text()
    check(status == 128 + number and errors == "tessera: stopped\n" and json.loads(record.read_text())["input"] == "a",
          f"{number.name}: status {status}, one line, and the record of what was done: {errors!r}")
    mark.unlink(), record.unlink()
    for words, signals in ((("denoise", "a", "b"), 2), (("convert", "a", "b"), 1)):
        process = started(stub, mark.exists, *words, env={"STUB": "hang", "STUB_TEMP": str(mark)})
        for _ in range(signals):
            check(process.poll() is None and mark.exists(), f"{number.name}: {words[0]} goes on")
            process.send_signal(number)
            time.sleep(0.5)
        status = process.wait(60)
        check(status == 128 + number and not mark.exists(), f"{number.name}: {words[0]} ends at once, {status}, without temporary files")
process = stub.start("denoise", "a", "b", env={"STUB": "poll", "STUB_TEMP": str(mark)}, stderr=-3,
                     preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
while not mark.exists():
    time.sleep(0.005)
process.send_signal(signal.SIGHUP)
time.sleep(0.2)
check(process.poll() is None, "under nohup SIGHUP is ignored")
process.terminate()
check(process.wait(60) == 128 + signal.SIGTERM, "and SIGTERM is not")
mark.unlink()

deep = write_safetensors(folder / "deep.safetensors", dncnn(3, depth=17, width=64))
write_png(folder / "long.png", to_integers(picture(1200, 1200), np.uint8))
where = folder / "stopped"
where.mkdir()
for number in SIGNALS:
    process = started(bench, lambda: leftovers(where), "denoise", folder / "long.png", where / "out.png", "--model", deep, "--tile", "128",
                      "--halo", "32")
    process.send_signal(number)
    status, errors = process.wait(120), (folder / "errors").read_text()
    check(status == 128 + number and "stopped" in errors, f"{number.name}: a real job ends with {status}: {errors!r}")
    check(not list(where.iterdir()), f"{number.name}: and leaves nothing: {list(where.iterdir())}")

# --- the file of the record --------------------------------------------------------------------------------------------

real, link = folder / "real.json", folder / "link.json"
real.write_text("older")
real.chmod(0o640)
link.symlink_to(real)
result = stub.run("denoise", "a", "b", "--json", link, "--quiet")
check(result.status == 0 and link.is_symlink() and json.loads(real.read_text())["record_file"] == str(link), f"a link stays a link: {result}")
check(stat.S_IMODE(real.stat().st_mode) == 0o640, "an older record keeps its rights")
pipe = folder / "pipe"
os.mkfifo(pipe)
reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
result = stub.run("denoise", "a", "b", "--json", pipe, "--quiet")
got = os.read(reader, 1 << 16)
os.close(reader)
check(result.status == 0 and json.loads(got)["input"] == "a" and pipe.is_fifo(), "a pipe is written to, not replaced")
for words in (("a", "b", "c", folder, "--json", "b"), ("a", "b", "--sigma", real, "--json", real), ("a", "b", "--truth", "t", "--json", "t"),
              ("a", "b", "c", "d", "--json", "d")):
    stub.check_refused(stub.run("denoise", *words), 2, "--json", "another name")
stub.check_refused(stub.run("denoise", "a", "b", "--json", folder), 1, "directory")
stub.check_refused(stub.run("denoise", "a", "b", "--json", folder / "no/where"), 1, "No such file")
if os.geteuid() != 0:
    real.chmod(0o400)
    stub.check_refused(stub.run("denoise", "a", "b", "--json", real), 1, "Permission denied")
check(not leftovers(folder), f"no temporary file is left: {leftovers(folder)}")

bench.failures += stub.failures
shutil.rmtree(stub.folder, ignore_errors=True)
bench.finish()
