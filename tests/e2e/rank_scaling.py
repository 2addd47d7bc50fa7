"""rank_scaling.py PROGRAM DIST_TOOL MODULE: the measured study of ranks, under a real mpirun: lines of one rank, bytes as planned. Times are not checked. Skips
without mpirun or without the MPI module."""
import json

from rank_launcher import open_bench, said
from support import dncnn, write_safetensors


def main():
    bench, launcher, program = open_bench()[:3]
    model = write_safetensors(bench.path("dncnn.safetensors"), dncnn(3, 5, 8))
    words = ("bench", "scaling", "--problems", "deblur", "--sizes", 96, "--square", "--repeats", 2, "--models", model, "--threads", 1)
    status, out, err = launcher.run(3, program, *words, "--ranks", "1,2,3")
    bench.check(status == 0 and all("whole iterations are not measured" in line for line in said(err)), f"three ranks: {status} {err[:400]}")
    points = [json.loads(line) for line in out.splitlines()]
    bench.check([p["ranks"] for p in points] == [1, 2, 3] and all(p["launched_ranks"] == 3 for p in points), f"a line for each number: {out}")
    for p in points:
        bench.check(p["simulated"] is False and p["measures"] == "denoiser" and p["seconds"] > 0, f"measured: {p}")
        bench.check(abs(p["denoiser_seconds"] + p["communication_seconds"] - p["seconds"]) < 1e-9, f"parts: {p}")
        bench.check(p["bytes_per_rank"] == p["planned_bytes_per_rank"], f"planned bytes: {p}")
        bench.check(p["helped"] >= 0 and (p["ranks"] > 1 or p["helped"] == 0), f"parts for others: {p}")
        bench.check(p["prediction"]["seconds"] > 0 and p["link"]["latency"] > 0 and p["link"]["bytes_per_second"] > 0, f"prediction: {p}")
        bench.check(p["busy_ranks"] == p["ranks"] and ("weak_efficiency" in p) == (p["ranks"] > 1), f"strips: {p}")
    alone = bench.run(*words)
    whole = json.loads(alone.out)["iteration"]
    bench.check(alone.status == 0 and whole["iterations"] == 2 and whole["gradient_seconds"] > 0 and whole["denoiser_seconds"] > 0 and
                abs(whole["gradient_seconds"] + whole["denoiser_seconds"] - whole["seconds"]) < 1e-9 and whole["bytes_per_rank"] > 0, f"whole iterations: {alone}")
    gray = write_safetensors(bench.path("gray.safetensors"), dncnn(1, 5, 8))
    volume = bench.run("bench", "scaling", "--problems", "tomo3d", "--sizes", 24, "--repeats", 1, "--models", gray, "--threads", 1)
    bench.check(volume.status == 0 and json.loads(volume.out)["measures"] == "iteration" and json.loads(volume.out)["gradient_seconds"] > 0, f"a volume: {volume}")
    held = [p["bytes_per_rank"] for p in points]
    bench.check(held[0] > held[1] > held[2], f"bytes of a rank fall: {held}")
    target = bench.path("lines.jsonl")
    status, out, err = launcher.run(2, program, *words, "--json", target)
    bench.check(status == 0 and out == "" and len(target.read_text().splitlines()) == 2, f"--json, all numbers: {status} {err[:400]}")
    status, out, err = launcher.run(2, program, *words, "--json", bench.path("missing/lines.jsonl"))
    bench.check(status == 1 and len(said(err)) == 1 and "missing" in err, f"a folder that is missing: {status} {err[:400]}")
    status, out, err = launcher.run(2, program, *words, "--ranks", "2", "--copies", "1")
    point = json.loads(out) if status == 0 else {}
    copies = point.get("copies", {})
    bench.check(status == 0 and len(copies["seconds"]) == 1 and abs(copies["seconds"][0] / point["seconds"] - copies["efficiency"]) < 1e-9 and
                0 < point["busy_seconds"] <= point["seconds"] and point["prediction"]["seconds_by_rates"] > 0, f"copies: {status} {out} {err[:400]}")
    status, out, err = launcher.run(2, program, *words, "--ranks", "3")
    bench.check(status == 2 and len(said(err)) == 1 and "only 2 were launched" in err, f"too many ranks: {status} {err[:400]}")
    status, out, err = launcher.run(2, program, "bench", "size")
    bench.check(status == 1 and len(said(err)) == 1, f"other studies do not take ranks: {status} {err[:400]}")
    bench.finish()


if __name__ == "__main__":
    main()
