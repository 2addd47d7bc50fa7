"""trace_instructions.py PROGRAM [--size N] [--model FILE]: what --trace, --profile and --live cost, in instructions.

Times of a busy machine differ by more than tracing costs. Valgrind counts instructions instead, by function and thread: this script
sums those of the functions that make traces, with all that they call, and those of the thread that answers requests for the live
page. A run without any option shows what the same functions cost when nobody asks for a trace. The model is the smallest one that
comes with the program, since the cost of a trace goes with the number of layers and a small layer has less work to set against it.
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import urllib.request

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Entry points of src/base/trace.h, the wrapper around a device's ops less the op itself, and the writer of the file.
TRACING = r"tess_trace_\w+|traced_run|count_op|tess_context_trace_write|tess_profile_\w+"
REQUESTS_PER_SECOND = 10


def counted(folder, name, command):
    """Instructions by thread: a list of the profiles that Valgrind wrote, and the number of answered requests."""
    profile = folder / f"{name}.profile"
    process = subprocess.Popen(["valgrind", "--tool=callgrind", "--separate-threads=yes", f"--callgrind-out-file={profile}",
                                *map(str, command)], stderr=subprocess.PIPE, text=True, env={**os.environ, "TESSERA_ISA": "avx2"})
    port, answers = 0, 0
    while "--live" in command and not port:
        port = int((re.search(r"127\.0\.0\.1:(\d+)/", process.stderr.readline()) or [0, 0])[1])
    while port and process.poll() is None:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/state.json", timeout=60).read()
            answers += 1
        except OSError:
            pass
        time.sleep(0.5)
    printed = process.communicate()[1]
    if process.returncode:
        sys.exit(f"failed: {command}\n{printed}")
    return sorted(folder.glob(f"{name}.profile-*")), answers


def instructions(profile, inclusive=False):
    """The sum of a profile, and a list of (instructions, function)."""
    lines = subprocess.run(["callgrind_annotate", "--threshold=100", f"--inclusive={'yes' if inclusive else 'no'}", profile],
                           capture_output=True, text=True, check=True).stdout.splitlines()
    rows = [re.match(r"\s*([\d,]+) \([^)]*\)\s+(.*)", line) for line in lines]
    rows = [(int(row[1].replace(",", "")), row[2]) for row in rows if row]
    return rows[0][0], [(count, re.sub(r" \[.*", "", name).split(":")[-1]) for count, name in rows[1:]]


def tracing(profile):
    """Instructions of the tracing functions themselves, and with what they call; the op that traced_run runs is not counted."""
    total, own = instructions(profile)
    _, whole = instructions(profile, inclusive=True)
    wrapper = {"traced_run", "count_op"}
    pure = [(count, name) for count, name in whole if re.fullmatch(TRACING, name) and name not in wrapper]
    wrapped = [(count, name) for count, name in own if name in wrapper]
    return total, sum(count for count, _ in pure + wrapped)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--size", type=int, default=128)
    parser.add_argument("--tile", type=int, default=64)
    parser.add_argument("--model", default=ROOT / "models/drunet-color-tiny.safetensors")
    parser.add_argument("--json", help="also writes the figures to this file")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        np.save(folder / "in.npy", np.random.default_rng(0).random((options.size, options.size, 3)).astype(np.float32))
        job = [options.program, "denoise", folder / "in.npy", folder / "out.npy", "--model", options.model, "--sigma", "0.1", "--quiet",
               "--device", "cpu", "--tile", options.tile, "--threads", "1"]
        begun = time.monotonic()
        subprocess.run(list(map(str, job)), check=True, env={**os.environ, "TESSERA_ISA": "avx2"})
        seconds = time.monotonic() - begun
        figures = {}
        for name, extra in {"off": [], "trace": ["--trace", folder / "t.json"],
                            "trace and profile": ["--trace", folder / "t.json", "--profile"]}.items():
            profiles, _ = counted(folder, name.replace(" ", "_"), job + extra)
            sums = [tracing(profile) for profile in profiles]
            figures[name] = sum(cost for _, cost in sums) / sum(total for total, _ in sums)
            print(f"{name:18} {sum(t for t, _ in sums) / 1e6:9.1f} million instructions, tracing {100 * figures[name]:.4f} %")
        profiles, answers = counted(folder, "live", job + ["--live", "0"])
        if not answers:
            sys.exit("no request was answered while the job ran")
        sums = [instructions(profile)[0] for profile in profiles]
        server = max(count for count, profile in zip(sums, profiles) if "MHD_" in str(instructions(profile, True)[1]) and count < sums[0])
        figures["live"] = server / answers * REQUESTS_PER_SECOND * seconds / sums[0]
        print(f"{'live':18} {server / answers / 1e3:9.1f} thousand instructions a request, start included; "
              f"{REQUESTS_PER_SECOND} requests a second: {100 * figures['live']:.4f} %")
        if options.json:
            pathlib.Path(options.json).write_text(json.dumps(figures) + "\n")


main()
