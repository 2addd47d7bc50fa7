"""links.py PROGRAM: the documentation against the source tree and the program; uses no network.

Every relative link and picture must exist, every anchor must be a heading's (as GitHub and as mkdocs write it), every page of docs/ must be
in mkdocs.yml and be reached from docs/index.md. Commands, in fenced blocks and in the text, must be possible: verbs and options are
those of `tessera help VERB`, scripts exist and know their options, programs of build/ have a source, make knows its targets."""
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import unicodedata

PROGRAM, ROOT = sys.argv[1], pathlib.Path(__file__).resolve().parents[2]
LAUNCHERS = ("mpirun", "srun", "sudo", "time", "nice", "env")
FENCE = re.compile(r"^ *```([^\n`]*)\n(.*?)^ *```", re.M | re.S)
helps = {}


def help_of(verb):
    if verb not in helps:
        done = subprocess.run([PROGRAM, "help", verb], capture_output=True, text=True)
        helps[verb] = done.stdout if done.returncode == 0 else None
    return helps[verb]


# --- commands --------------------------------------------------------------------------------------------------------

def commands_of(block):
    """The simple commands of a piece of shell, as lists of words."""
    for line in block.replace("\\\n", " ").splitlines():
        lexer = shlex.shlex(line.replace("$(", " ( "), posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        try:
            words = list(lexer)
        except ValueError:  # a quotation mark of the text
            words = line.split()
        command = []
        for word in [*words, ";"]:
            if word and set(word) <= set(";&|()"):
                if command:
                    yield command
                command = []
            else:
                command.append(word)


def options(words):
    return [word.split("=")[0] for word in words if re.match(r"--?[a-z]", word)]


def unknown_options(words, text):
    return [word for word in options(words) if not re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", text)]


def problem_of_program(words):
    verbs = words[1:3] if words[1:2] == ["plan"] else words[1:2]
    if not verbs or any(not re.fullmatch(r"[a-z]+", verb) for verb in verbs):  # VERB, …, --version
        return None
    text = ""
    for verb in verbs:
        known = help_of(verb)
        if known is None:
            return f"no verb {verb}"
        text += known
    if verbs == ["help"]:  # its options are in no table
        text += " --man --completion"
    unknown = unknown_options(words[2:], text)
    return f"tessera {verbs[-1]} does not know {' '.join(unknown)}" if unknown else None


def problem_of_script(words):
    found = [at for at, word in enumerate(words) if word.endswith(".py")]
    if not found or re.search(r"[A-Z*…]|^gdal_", words[found[0]]):
        return None
    name, rest = words[found[0]], words[found[0] + 1:]
    paths = [ROOT / name] if "/" in name else [path for part in ("bench", "tests") for path in (ROOT / part).rglob(name)]
    paths = [path for path in paths if path.is_file()]
    if not paths:
        return f"no script {name}"
    text = "".join(path.read_text() for path in paths[0].parent.glob("*.py"))  # with what it imports from beside it
    unknown = unknown_options(rest, text)
    return f"{name} does not know {' '.join(unknown)}" if unknown else None


def problem_of_make(words):
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.M))
    unknown = [word for word in words[1:] if re.fullmatch(r"[a-z-]+", word) and not word.startswith("-") and word not in targets]
    return f"make has no target {unknown[0]}" if unknown else None


def problem_of(words):
    while words and re.match(r"[A-Z_]+=|\$$", words[0]):
        words = words[1:]
    if words and words[0] in LAUNCHERS:
        words = next((words[at:] for at, word in enumerate(words) if word.split("/")[-1] == "tessera"), [])
    if not words:
        return None
    first = words[0]
    if first.split("/")[-1] == "tessera":
        return problem_of_program(words)
    if re.fullmatch(r"python3?", first) or first.endswith(".py"):
        return problem_of_script(words)
    if first == "make":
        return problem_of_make(words)
    built = re.fullmatch(r"build/(?:tests/)?(\w+)", first)
    if built:
        return None if any(ROOT.glob(f"*/*/{built[1]}.c")) else f"nothing builds {first}"
    return None if not first.startswith("tools/") or (ROOT / first).exists() else f"no {first}"


# --- links -----------------------------------------------------------------------------------------------------------

def anchors_of(text):
    """Names of headings that GitHub and mkdocs agree on."""
    both = []
    for heading in re.findall(r"^#+ +(.*?) *#*$", FENCE.sub("", text), re.M):
        heading = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
        github = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        plain = unicodedata.normalize("NFKD", heading).encode("ascii", "ignore").decode()
        mkdocs = re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain).strip().lower())
        if github == mkdocs:
            both.append(github)
    return both


def links_of(text):
    text = re.sub(r"(`+)(?:(?!\n\n).)+?\1", "", FENCE.sub("", text), flags=re.S)
    return re.findall(r"\]\(([^)\s]+)(?: \"[^\"]*\")?\)", text) + re.findall(r"(?:src|href)=\"([^\"]+)\"", text)


def problem_of_link(path, link):
    if re.match(r"[a-z]+:", link):
        return None
    target, _, anchor = link.partition("#")
    file = (path.parent / target) if target else path
    if not file.exists():
        return f"{link} is not there"
    if target and not file.resolve().is_relative_to(ROOT):
        return f"{link} leaves the tree"
    if anchor and (file.suffix != ".md" or anchor not in anchors_of(file.read_text())):
        return f"{link}: no such heading"
    return None


def problems_of(path):
    text = path.read_text()
    found = [problem_of_link(path, link) for link in links_of(text)]
    blocks = [body for language, body in FENCE.findall(text) if language.strip() in ("", "sh", "bash")]
    spans = [match[1] for match in re.findall(r"(`+)((?:(?!\n\n).)+?)\1", FENCE.sub("", text), re.S)]
    blocks += [" ".join(span.split()) for span in spans if re.match(r"(tessera|mpirun|python3?|make|build/|bench/|tests/|tools/|[A-Z_]+=\S+) ?|\w+\.py ", span)]
    found += [problem_of(words) for block in blocks for words in commands_of(block)]
    return [each for each in found if each]


# --- the test ----------------------------------------------------------------------------------------------------------

WRONG = """# A page
[a](nowhere.md) [b](#no-heading) ![c](no.png) [good](#a-page) `tessera denoise a b --sigmma 1` `make nothing`
```sh
tessera denoize a.png b.png
A=1 mpirun -n 2 tessera plan fill a.tif b.tif --sampling ddim   # --not-an-option of a comment
python3 bench/studies/no_such.py && python3 bench/studies/widen.py --no-such-option
build/no_such_rates cuda
tessera denoise a.png b.png --sigma 25/255 --json - | tessera report a.json -o b.html
```
"""


def check_itself():
    with tempfile.TemporaryDirectory() as folder:
        page = pathlib.Path(folder) / "page.md"
        page.write_text(WRONG)
        found = problems_of(page)
    if len(found) != 10:
        sys.exit(f"the check itself is wrong: 10 faults, found {len(found)}:\n  " + "\n  ".join(found))


def main():
    check_itself()
    docs = sorted((ROOT / "docs").glob("*.md"))
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *docs, *sorted(ROOT.glob("docs/*/*.md")), *sorted((ROOT / "models").glob("*.md"))]
    wrong = [f"{page.relative_to(ROOT)}: {problem}" for page in pages for problem in problems_of(page)]
    index, site = links_of((ROOT / "docs" / "index.md").read_text()), (ROOT / "mkdocs.yml").read_text()
    for page in docs:
        if page.name != "index.md" and page.name not in [link.partition("#")[0] for link in index]:
            wrong.append(f"docs/index.md has no link to {page.name}")
        if not re.search(rf"\s{re.escape(page.name)}\s", site):
            wrong.append(f"mkdocs.yml does not list {page.name}")
    for line in wrong:
        print(line[:100])
    print(f"{len(pages)} pages, {len(wrong)} faults")
    sys.exit(1 if wrong else 0)


main()
