"""Compares one training step of Tessera with PyTorch's best on one device, alternately in one run.

    python bench/studies/compare_train.py --train-rates build/train_rates --out build/compare_train \\
        [--device cuda] [--cases "drunet:64 drunet:16 dncnn:64"] [--modes eager-bf16,compile-bf16] [--precision bf16] [--seconds 140]

In the first round Tessera runs all settings (--micro x --recompute) of each case, then PyTorch all modes
(bench/peers/torch_train.py says what they are). In the further rounds only the chosen settings and the fastest mode run
again, and the least median of all rounds counts. The table says Tessera's fastest setting, and the fastest within --share
of the memory of PyTorch's fastest mode; where another mode of PyTorch takes less memory, a line compares with that one too.
Memory on a GPU: the tensors' peak against counted bytes, and what the driver lost on both sides; on the CPU: growth of the
resident peak. Writes OUT/lines.jsonl (all measurements), OUT/summary.json and OUT/table.txt, which is also printed.
On a busy CPU use --by cpu, which orders and compares by the processor time of all threads instead of the clock.
After --seconds nothing further begins, and what was left out is said; a fourth of them is kept for the further rounds.
"""
import argparse
import itertools
import json
import pathlib
import subprocess
import sys
import time

PEER = pathlib.Path(__file__).resolve().parent.parent / "peers" / "torch_train.py"
MIB = 1 << 20
# The modes that compile come last: a run that is short of time leaves them out, not the quick ones.
MODES = {"cuda": "eager-bf16,graph-bf16,eager-bf16-pad,graph-bf16-pad,eager-fp16,compile-bf16,reduce-bf16",
         "fp32": "eager-fp32,eager-fp32-nchw,eager-fp32-native,compile-fp32,compile-fp32-native", "bf16": "eager-bf16,eager-fastmath,compile-bf16"}


class Run:
    def __init__(self, args):
        self.args, self.out, self.started = args, pathlib.Path(args.out), time.perf_counter()
        self.cuda = args.device.startswith("cuda")
        self.out.mkdir(parents=True, exist_ok=True)
        self.records, self.rows, self.files = [], [], {}
        (self.out / "lines.jsonl").write_text("")

    def left(self):
        return self.args.seconds - (time.perf_counter() - self.started)

    def say(self, text=""):
        self.rows.append(text)
        print(text, flush=True)

    def lines(self, command, **mark):
        """Runs a program and keeps its JSON lines; one that fails becomes a line with its error."""
        words = [str(word) for word in command]
        if self.left() <= 0:
            self.say(f"LEFT OUT (--seconds is over): {' '.join(words[1:])}")
            return
        started = time.perf_counter()
        result = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        found = [json.loads(line) for line in result.stdout.splitlines() if line.startswith("{")]
        if result.returncode and not found:
            found = [{"error": (result.stderr.strip().splitlines() or [f"status {result.returncode}"])[-1]}]
        found = [{**line, **mark} for line in found]
        self.records += found
        with open(self.out / "lines.jsonl", "a") as target:
            target.writelines(json.dumps(line) + "\n" for line in found)
        print(f"# {time.perf_counter() - started:5.1f} s  {' '.join(words[1:])}", file=sys.stderr, flush=True)
        for line in found:
            if "error" in line:
                self.say(f"FAILED {line.get('case', '')} {line.get('mode') or line.get('setting', '')}: {line['error']}")

    def torch(self, cases, last):
        a, left = self.args, self.left() - (0 if last else self.args.seconds / 4)
        self.lines([a.python, PEER, "--device", a.device, "--cases", " ".join(cases), "--modes", a.modes, "--steps", a.steps,
                    "--warm", a.warm, "--threads", a.threads, "--seconds", round(max(1, left))], engine="torch")

    def tessera(self, case, setting):
        a, (network, batch, *crop) = self.args, case.split(":")
        self.lines([a.train_rates, f"device={a.device}", f"model={self.model(network)}", f"precision={a.precision}", f"batch={batch}",
                    f"crop={crop[0] if crop else 128}", f"steps={a.warm + a.steps}", f"threads={a.threads}", *setting.split(), *a.words.split()],
                   engine="tessera", case=case, setting=setting)

    def model(self, network):
        """A random network of full width, or for dncnnN a file that PyTorch writes."""
        if network in ("drunet", "unet", "dncnn"):
            return f"random:{network}"
        path = self.out / f"{network}.safetensors"
        if network not in self.files:
            subprocess.run([self.args.python, PEER, "--device", self.args.device, "--cases", f"{network}:1", "--write", path], check=True)
            self.files[network] = path
        return path

    def merged(self, case, engine):
        """One record for each mode or setting: the least times and the most memory of all rounds. The fastest is first."""
        groups = {}
        for line in self.records:
            if line.get("case") == case and line["engine"] == engine and "error" not in line:
                groups.setdefault(line.get("mode") or line.get("setting"), []).append(line)
        best = []
        for name, lines in groups.items():
            one = {"name": name, "case": case, "engine": engine, "rounds": len(lines), "version": lines[0].get("version"),
                   "ms": min(line["ms"] for line in lines), "least_ms": min(line["least_ms"] for line in lines),
                   "cpu_ms": min((line["least_cpu_ms"] for line in lines if "least_cpu_ms" in line), default=None)}
            keys = ({"mib": ("peak_mib", 1), "driver_mib": ("driver_mib", 1), "reserved_mib": ("reserved_mib", 1)} if engine == "torch"
                    else {"mib": ("counted_bytes", MIB), "driver_mib": ("driver_bytes", MIB), "planned_mib": ("planned_bytes", MIB)})
            if not self.cuda:
                keys = ({"mib": ("resident_mib", 1), "process_mib": ("process_mib", 1)} if engine == "torch"
                        else {"mib": ("resident_bytes", MIB), "planned_mib": ("planned_bytes", MIB)})
            one.update({key: max(line[source] for line in lines) / unit for key, (source, unit) in keys.items()})
            best.append(one)
        return sorted(best, key=self.time)

    def time(self, one):
        return one[{"median": "ms", "least": "least_ms", "cpu": "cpu_ms"}[self.args.by]]


def chosen(run, case):
    """PyTorch's fastest mode, Tessera's fastest setting, and its fastest within the share of memory; None where there is none."""
    theirs, ours = run.merged(case, "torch"), run.merged(case, "tessera")
    peer, mine = (theirs or [None])[0], (ours or [None])[0]
    small = next((one for one in ours if peer and one["mib"] <= run.args.share * peer["mib"]), None)
    return peer, mine, small


def measure(run, cases):
    settings = [f"micro={m} recompute={r}" for m, r in itertools.product(run.args.micro.split(","), run.args.recompute.split(","))]
    for turn in range(run.args.rounds):
        picks = {case: chosen(run, case) for case in cases}
        for case, (_, mine, small) in picks.items():
            again = dict.fromkeys(one["name"] for one in (mine, small) if one)
            for setting in again if turn else settings:
                micro = int(setting.split()[0].split("=")[1])
                # Batch norm over a part of the batch would be another step.
                if int(case.split(":")[1]) % micro == 0 and (micro == 1 or not case.startswith("unet")):
                    run.tessera(case, setting)
        peers = [f"{case}={peer['name']}" for case, (peer, _, _) in picks.items() if peer] if turn else cases
        if peers and not run.args.no_torch:
            run.torch(peers, turn + 1 == run.args.rounds)


def row(run, case, label, one, peer):
    planned = f" (planned {one['planned_mib']:.0f})" if "planned_mib" in one else ""
    cells = [f"{case:12}", f"{label:29}", one["name"], f"{one['ms']:.2f}", f"{one['least_ms']:.2f}",
             f"{one['cpu_ms']:.1f}" if one["cpu_ms"] else "-", f"{one['mib']:.0f}{planned}",
             f"{one['driver_mib']:.0f}" if run.cuda else "-"]
    if peer and one is not peer:
        cells += [f"{run.time(peer) / run.time(one):.2f}x", f"{one['mib'] / peer['mib']:.2f}x",
                  f"{one['driver_mib'] / peer['driver_mib']:.2f}x" if run.cuda else "-"]
    run.say(" | ".join(cells))


def tell(run, cases):
    run.say("case | what | mode or setting | ms (median) | ms (least) | ms (cpu) | "
            f"{'counted' if run.cuda else 'resident growth'} MiB | driver MiB | speed | memory | driver memory")
    summary = []
    for case in cases:
        peer, mine, small = chosen(run, case)
        for other in run.merged(case, "torch")[1:]:
            row(run, case, "torch", other, None)
        if peer:
            row(run, case, "torch, fastest", peer, None)
        if mine:
            row(run, case, "tessera, fastest", mine, peer)
        if small:
            row(run, case, f"tessera, within {run.args.share}x memory", small, peer)
        elif mine and peer:
            run.say(f"{case:12} | no setting of Tessera takes at most {run.args.share}x the memory of {peer['name']}")
        least = min(run.merged(case, "torch"), key=lambda one: one["mib"], default=None)
        if least and least["name"] != peer["name"] and mine:
            row(run, case, "tessera, against least memory", small or mine, least)
        summary.append({"case": case, "torch": peer, "tessera": mine, "tessera_small": small,
                        "speed": run.time(peer) / run.time(mine) if peer and mine else None,
                        "small_speed": run.time(peer) / run.time(small) if peer and small else None,
                        "small_memory": small["mib"] / peer["mib"] if peer and small else None,
                        "all": run.merged(case, "torch") + run.merged(case, "tessera")})
    (run.out / "summary.json").write_text(json.dumps(
        {"study": "compare_train", "device": run.args.device, "precision": run.args.precision, "by": run.args.by,
         "seconds": time.perf_counter() - run.started, "cases": summary}, indent=1) + "\n")
    (run.out / "table.txt").write_text("\n".join(run.rows) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--train-rates", default="build/train_rates")
    parser.add_argument("--python", default=sys.executable, help="the Python that has torch")
    parser.add_argument("--out", default="build/compare_train")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--cases", help='default: "drunet:64 drunet:16 dncnn:64", on the CPU "dncnn8:16:48"')
    parser.add_argument("--modes", help="of PyTorch; default: all of the precision")
    parser.add_argument("--precision", help="of Tessera; default: bf16, on the CPU fp32")
    parser.add_argument("--micro", default="1,2,4")
    parser.add_argument("--recompute", default="none,blocks", help="none, some:N, blocks, all")
    parser.add_argument("--words", default="", help="further words for train_rates, such as update=1")
    parser.add_argument("--share", type=float, help="of PyTorch's memory; default: 0.7, on the CPU 0.5")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--warm", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--by", choices=("median", "least", "cpu"), default="median", help="the time to compare")
    parser.add_argument("--seconds", type=float, default=140)
    parser.add_argument("--no-torch", action="store_true")
    args = parser.parse_args()
    cuda = args.device.startswith("cuda")
    if cuda and args.by == "cpu":
        sys.exit("--by cpu is for --device cpu; use median or least")
    args.precision = args.precision or ("bf16" if cuda else "fp32")
    args.share = args.share or (0.7 if cuda else 0.5)
    args.cases = args.cases or ("drunet:64 drunet:16 dncnn:64" if cuda else "dncnn8:16:48")
    args.modes = args.modes or MODES[args.precision if not cuda else "cuda"]
    run = Run(args)
    cases = args.cases.split()
    measure(run, cases)
    tell(run, cases)


if __name__ == "__main__":
    main()
