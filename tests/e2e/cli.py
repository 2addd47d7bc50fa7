"""cli.py PROGRAM STUB: the meaning of the options; help, manual pages, completion and parser know the same ones.

STUB is the program with a library that only reports its settings (tests/cli/cli_stub.c).
"""
import json
import pathlib
import re
import shutil
import subprocess
import sys

from support import Bench

bench, stub = Bench(sys.argv[1]), Bench(sys.argv[2])
check, refused = bench.check, stub.check_refused
folder = bench.folder


def help_of(*words):
    result = bench.run(*words)
    check(result.status == 0 and not result.err, f"{' '.join(words)}: prints help: {result}")
    return result.out


overview = help_of("help")
verbs = re.findall(r"^  tessera (\w+)", overview, re.M)
helps = {verb: help_of("help", verb) for verb in verbs}
options = {verb: dict(re.findall(r"^  (--[\w-]+)(?: (\S+))?", text, re.M)) for verb, text in helps.items()}

# --- help ----------------------------------------------------------------------------------------------------------

check(overview == help_of("--help") == help_of("-h"), "help, --help and -h are the same")
check({"denoise", "reconstruct", "fill", "detect", "train", "plan", "bench", "report", "convert", "info", "top", "help"} == set(verbs), f"the verbs: {verbs}")
for verb in verbs:
    check(helps[verb] == help_of(verb, "--help") == help_of(verb, "-h"), f"{verb}: help VERB is VERB --help")
    check("Example: tessera " + verb in helps[verb] and helps[verb].startswith(f"Usage: tessera {verb}"), f"{verb}: usage and example")
    long = [line for line in (helps[verb] + overview).splitlines() if len(line) > 100]
    check(not long, f"{verb}: at most 100 columns: {long}")
for verb in ("denoise", "reconstruct"):
    check(help_of("plan", verb, "--help") == helps[verb] and verb in helps["plan"], f"plan {verb} shares its options")
check(re.fullmatch(r"\d+\.\d+\.\d+\n", help_of("--version")), "--version")

# --- the parser accepts what the help lists, and nothing else ----------------------------------------------------------

everything = sorted({name for own in options.values() for name in own} | {"--nothing"})
check(len(everything) > 40, f"{len(everything)} options in all")
for verb in verbs:
    for name in everything:
        result = bench.run(verb, f"{name}=")
        wanted = "unknown option" if name not in options[verb] else "lacks its value" if options[verb][name] else "takes no value"
        if result.status != 2 or len(result.lines) != 1 or wanted not in result.err:
            check(False, f"{verb} {name}: {wanted}: {result}")
for typed, meant in (("--sigm", "--sigma"), ("--strenght", "--strength"), ("--mem", "--memory"), ("--noise", "--add-noise"),
                     ("-sigma", "--sigma"), ("--skip", "--skip-existing"), ("--tiles", "--tile"), ("--versbose", "--verbose")):
    refused(stub.run("denoise", "a", "b", typed, "1"), 2, f"unknown option {typed}", f"did you mean {meant}?")
refused(stub.run("denoise", "a", "b", "--zzz", "1"), 2, "unknown option --zzz", "tessera help denoise")
for typed, meant in (("denoize", "denoise"), ("recontruct", "reconstruct"), ("--verison", "--version"), ("inof", "info")):
    refused(stub.run(typed), 2, typed, f"did you mean {meant}?")
refused(stub.run("help", "denose"), 2, "did you mean denoise?")
refused(stub.run("plan", "denose", "a", "b"), 2, "did you mean denoise?")
refused(stub.run("plan", "--quiet", "denoise", "a", "b"), 2, "verb comes first")
refused(stub.run("denoise"), 2, "missing", "usage: tessera denoise IN... OUT [options]")
refused(stub.run("denoise", "a"), 2, "missing", "usage")
refused(stub.run("info", "extra"), 2, "extra", "usage: tessera info")
refused(stub.run("denoise", "a", "b", "--json", "--quiet"), 2, "--json", "lacks its value")
refused(stub.run("help", "--completion", "fish"), 2, "bash or zsh")

# --- values ----------------------------------------------------------------------------------------------------------


def settings(*words, inputs=("a", "b")):
    return stub.record("denoise", *inputs, *words) or {}


def means(words, **wanted):
    got = settings(*words)
    check({key: got.get(key) for key in wanted} == wanted, f"{' '.join(map(str, words))}: {wanted}")


plain = settings()
check(plain["input"] == "a" and plain["output"] == "b" and not plain["inputs"], "one input")
several = settings(inputs=("a", "b", "c", folder))
check("input" not in several and several["inputs"] == ["a", "b", "c"] and several["output"] == str(folder), "several inputs")
check(json.loads(stub.run("denoise", "--json=-", "--", "-a", "--b").out)["input"] == "-a", "-- ends the options")
levels, file = folder / "levels.npy", folder / "there.png"
levels.touch(), file.touch()
for words in ((file, file, file), ("a", file, "b", levels)):
    refused(stub.run("denoise", *words), 2, words[-1].name, "folder")
means(["--sigma", "25/255"], sigma=0.0980392157, sigma_map=None)
means(["--sigma=0.1"], sigma=0.1)
means(["--sigma", "0.1", "--sigma", "auto"], sigma=-2, sigma_map=None)
means(["--sigma", "0.1", "--sigma", levels], sigma=-1, sigma_map=str(levels))
means([f"--sigma={levels}", "--sigma", "0"], sigma=0, sigma_map=None)
for text in ("loud", folder / "none.npy", "-0.1", "1/0", "nan", "inf"):
    refused(stub.run("denoise", "a", "b", "--sigma", text), 2, f"--sigma {text}", "number", "auto", "file")
means([], strength=1, range=[0, 0, 0], flags=[0, 0, 0, 0], axes=None, sigma=-1)
means(["--strength", "0.25"], strength=0.25)
means(["--range", "-32,4310"], range=[2, -32, 4310])
means(["--range=-32,-1/2"], range=[2, -32, -0.5])
means(["--range", "type"], range=[1, 0, 0])
means(["--range", "auto"], range=[0, 0, 0])
for axes in ("HW", "HWC", "CHW", "DHW", "DHWC"):
    means(["--axes", axes], axes=axes)
means(["--axes", "HW", "--axes", "auto"], axes=None)
for i, flag in enumerate(("--recursive", "--skip-existing", "--overwrite", "--dither")):
    means([flag], flags=[int(i == k) for k in range(4)])
means(["--tile", "64", "--halo", "exact", "--batch", "3"], tile=[64, 64], halo=-2, batch=3)
means(["--tile", "64x32", "--halo", "auto", "--batch", "auto"], tile=[64, 32], halo=-1, batch=0)
means(["--tile", "whole", "--halo", "12"], tile=[-1, -1], halo=12)
means(["--model", "m", "--truth", "t", "--add-noise", "5/255", "--seed", "7", "--threads", "2", "--device", "cpu", "--precision", "fp32"],
      model="m", truth="t", add_noise=0.0196078431, seed=7, threads=2, device="cpu", precision="fp32")
for text, size in (("512MB", 512 << 20), ("512MiB", 512 << 20), ("512M", 512 << 20), ("512m", 512 << 20), ("0.5G", 512 << 20),
                   ("0.5GiB", 512 << 20), ("512 M", 512 << 20), ("2048kb", 2 << 20), ("1T", 1 << 40), ("1048576", 1 << 20)):
    means(["--memory", text], memory=size)
for words, hint in (("100", "did you mean 100M?"), ("1K", "did you mean 1M?"), ("0.5K", "1 MiB")):
    refused(stub.run("denoise", "a", "b", "--memory", words), 2, f"--memory {words}", "1 MiB", hint)
for name, values in (("--memory", ("lots", "-5M", "0", "5X", "5MM", "nan", "1e30G")), ("--strength", ("1.5", "-1", "x")), ("--axes", ("WH", "hw")),
                     ("--range", ("5,4", "5", "5,", ",5", "1,1", "a,b", "nan,1")), ("--tile", ("0", "12x", "1x2x3", "-5", "")),
                     ("--halo", ("-1", "far")), ("--batch", ("0", "x")), ("--threads", ("0", "9999")), ("--seed", ("-1",))):
    for value in values:
        refused(stub.run("denoise", "a", "b", name, value), 2, name)

# --- manual pages and completion, as the build has made them -----------------------------------------------------------

share = pathlib.Path(bench.program).parent / "share"
for verb in ["", *verbs]:
    page = share / "man/man1" / (f"tessera-{verb}.1" if verb else "tessera.1")
    text = page.read_text()
    check(text == bench.run("help", "--man", *([verb] if verb else [])).out, f"{page.name} is what help --man prints")
    shown = text.replace("\\-", "-").replace("\\fI", "").replace("\\fR", "")
    listed = re.findall(r"^\.B (--[\w-]+)", shown, re.M)
    check(listed == list(options[verb]) if verb else all(f"tessera-{each} (1)" in shown for each in verbs), f"{page.name}: all options")
    wanted = [".TH", ".SH NAME", ".SH SYNOPSIS", ".SH EXIT STATUS", ".SH SEE ALSO"]
    places = [text.find(each) for each in wanted]
    check(places == sorted(places) and places[0] == 0, f"{page.name}: its sections")
    if shutil.which("groff"):
        result = subprocess.run(["groff", "-man", "-ww", "-z", "-Tutf8", page], capture_output=True, text=True)
        check(result.returncode == 0 and not result.stderr, f"{page.name}: no warning of groff: {result.stderr[:300]}")


script = share / "bash-completion/completions/tessera"


def complete(*words):
    """What bash offers for the last word; = is a word of its own, as bash has it."""
    code = 'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _tessera; printf "%s\\n" "${COMPREPLY[@]}"'
    result = subprocess.run(["bash", "-c", code, "bash", script, bench.program, *words], capture_output=True, text=True, cwd=folder)
    check(result.returncode == 0 and not result.stderr, f"bash completes {words}: {result.stderr}")
    return sorted(result.stdout.split("\n")[:-1]) if result.stdout.strip() else []


(folder / "a file.png").touch()
if shutil.which("bash"):
    check(script.read_text() == bench.run("help", "--completion", "bash").out, "the file is what help --completion prints")
    check(complete("") == sorted([*verbs, "--help", "--version"]) and complete("deno") == ["denoise"], "verbs are completed")
    for verb in verbs:
        check(complete(verb, "--") == sorted(options[verb]), f"{verb}: its options are completed")
    check(complete("plan", "") == ["denoise", "detect", "fill", "reconstruct", "train"] and complete("plan", "denoise", "--") == sorted(options["denoise"]), "plan")
    check(complete("denoise", "--axes", "D") == complete("denoise", "--axes", "=", "D") == ["DHW", "DHWC"], "words of an option")
    check(len(complete("denoise", "--axes", "=")) == 6 and complete("denoise", "--threads", "") == [], "all words; none for numbers")
    check(complete("denoise", "th") == complete("denoise", "--truth", "th") == ["there.png"], "files are completed")
    check(complete("denoise", "a") == ["a file.png"], f"also with a space: {complete('denoise', 'a')}")
    check(complete("denoise", "--quiet", "l") == ["levels.npy"] and complete("denoise", "--sigma", "") == sorted(
        ["auto", *(p.name for p in folder.iterdir())]), "a flag has no value; words and files together")
    check({"drunet-color-small", "drunet-gray-small"} <= set(complete("denoise", "--model", "dr")), "bundled models are completed")
    check(complete("bench", "") == ["batch", "dem", "device", "scaling", "size", "stats"] and complete("help", "inf") == ["info"], "words of bench and help")
zsh = (share / "zsh/site-functions/_tessera").read_text()
check(zsh == bench.run("help", "--completion", "zsh").out and zsh.startswith("#compdef tessera"), "the file for zsh")
check(all(f"'{name}{'=' if value else ''}[" in zsh for own in options.values() for name, value in own.items()), "zsh: all options")
if shutil.which("zsh"):
    result = subprocess.run(["zsh", "-n", share / "zsh/site-functions/_tessera"], capture_output=True, text=True)
    check(result.returncode == 0, f"zsh reads it: {result.stderr}")

bench.failures += stub.failures
shutil.rmtree(stub.folder, ignore_errors=True)
bench.finish()
