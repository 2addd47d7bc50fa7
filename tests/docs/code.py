"""code.py COMPILER: the C code of docs/extending.md, which is meant to be copied into src/, compiles without a warning."""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
blocks = re.findall(r"^```c\n(.*?)^```", (ROOT / "docs" / "extending.md").read_text(), re.M | re.S)
for block in blocks:
    command = [sys.argv[1], "-std=c11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", f"-I{ROOT / 'src'}", f"-I{ROOT / 'include'}", "-xc", "-"]
    done = subprocess.run(command, input=block, capture_output=True, text=True)
    if done.returncode:
        sys.exit("\n".join(line[:100] for line in done.stderr.splitlines()[:10]))
print(f"{len(blocks)} block(s) compile")
sys.exit(0 if blocks else 1)
