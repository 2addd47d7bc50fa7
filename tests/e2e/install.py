"""The installed tree works without the build: it is moved and searched for paths of the build; the
examples are built against it with pkg-config and with CMake's find_package, run, and compared with the program.

    install.py build/tessera"""
import os
import pathlib
import re
import shutil
import subprocess
import sys

from support import Bench, np, skip

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent


def run(*command, env=None, **more):
    return subprocess.run([str(part) for part in command], env={**os.environ, **(env or {})}, capture_output=True, **more)


def install(bench, build):
    first, tree = bench.path("first"), bench.path("moved") / "tree"
    done = run("cmake", "--install", build, "--prefix", first, "--strip")
    bench.check(done.returncode == 0, f"installs: {done.stderr.decode()[-400:]}")
    tree.parent.mkdir()
    shutil.move(first, tree)
    return tree


def look_for_paths(bench, tree, build):
    files = [path for path in tree.rglob("*") if path.is_file() and not path.is_symlink()]
    for where in (SOURCE, build, bench.folder):
        found = [str(path.relative_to(tree)) for path in files if str(where).encode() in path.read_bytes()]
        bench.check(len(files) > 20 and not found, f"no installed file names {where}: {found}")


def look_at_symbols(bench, tree):
    if not shutil.which("nm"):
        return
    headers = "".join((tree / "include" / name).read_text() for name in ("tessera.h", "tessera_images.h", "tessera_study.h", "tessera_train.h", "tessera_ranks.h", "tessera_fill.h", "tessera_detect.h", "tessera_trace.h", "tessera_report.h"))
    plain = re.sub(r"#define (?:.*\\\n)*.*\n", "", re.sub(r"/\*.*?\*/", "", headers, flags=re.S))  # no comments, no macros
    declared = set(re.findall(r"\b(tess_\w+)\(", plain))
    listed = run("nm", "-D", "--defined-only", next(tree.rglob("libtessera.so"))).stdout.decode()
    exported = {line.split()[-1] for line in listed.splitlines()}
    bench.check(exported == declared, f"exports what the headers declare: {sorted(exported ^ declared)}")


def look_for_module(bench, tree):
    """The installed program finds the MPI module: it says that this process is alone, not that there is no module."""
    if not list(tree.rglob("tessera_mpi.so")):
        return
    alone = run(tree / "bin/tessera", "info", env={"PMI_SIZE": "2", "PMI_RANK": "0"})
    bench.check(alone.returncode == 1 and b"the launcher started 2 ranks (PMI_SIZE), but" in alone.stderr, f"finds its MPI module: {alone.stderr.decode()}")


def build_examples(bench, tree):
    """{name of the way: folder with the programs}"""
    packages = next(tree.rglob("tessera.pc")).parent
    library = next(tree.rglob("libtessera.so")).parent
    env = {"PKG_CONFIG_PATH": os.pathsep.join([str(packages), os.environ.get("PKG_CONFIG_PATH", "")])}
    ways = {}
    for way, static in (("shared", []), ("static", ["--static"])):
        folder = ways[way] = bench.path(way)
        folder.mkdir()
        flags = run("pkg-config", *static, "--cflags", "--libs", "tessera", env=env).stdout.decode().split()
        if static:
            flags = [str(library / "libtessera.a") if flag == "-ltessera" else flag for flag in flags]
        for compiler, source in (("cc", "array.c"), ("c++", "planes.cpp")):
            standard = ["-std=c11", "-pedantic"] if compiler == "cc" else ["-std=c++17"]
            done = run(compiler, *standard, "-Wall", "-Wextra", "-Werror", SOURCE / "examples" / source, "-o",
                       folder / source.split(".")[0], *flags)
            bench.check(done.returncode == 0, f"{way}: {source} builds: {done.stderr.decode()[-600:]}")
    ways["cmake"] = bench.path("cmake")
    done = run("cmake", "-S", SOURCE / "examples", "-B", ways["cmake"], f"-DCMAKE_PREFIX_PATH={tree}")
    done = run("cmake", "--build", ways["cmake"]) if done.returncode == 0 else done
    bench.check(done.returncode == 0, f"cmake: {done.stdout.decode()[-300:]} {done.stderr.decode()[-600:]}")
    return ways, library


def compare(bench, tree, ways, library):
    random = np.random.default_rng(1)
    y, x = np.mgrid[:83, :101]
    clean = 0.5 + 0.3 * np.sin(x / 9.0)[..., None] * np.cos(y[..., None] / (7.0 + np.arange(3)))
    values = np.clip(clean + random.normal(0, 0.1, clean.shape), 0, 1).astype(np.float32)
    pixels = np.round(255 * values).astype(np.uint8)
    expected = {}
    program = tree / "bin" / "tessera"
    for name, array in (("bytes", pixels), ("floats", values)):
        np.save(bench.path(f"{name}.npy"), array)
        done = run(program, "denoise", bench.path(f"{name}.npy"), bench.path(f"{name}_out.npy"), "--sigma", "0.1", "--axes", "HWC",
                   "--model", "drunet-color-small", "--range", "type", "--quiet")
        bench.check(done.returncode == 0, f"the installed program runs: {done.stderr.decode()[-300:]}")
        expected[name] = np.load(bench.path(f"{name}_out.npy"))
    bench.path("in.ppm").write_bytes(b"P6 101 83 255\n" + pixels.tobytes())
    env = {"LD_LIBRARY_PATH": os.pathsep.join([str(library), os.environ.get("LD_LIBRARY_PATH", "")])}
    for way, folder in ways.items():
        env["TESSERA_MODELS"] = str(tree / "share/tessera/models") if way == "static" else ""
        done = run(folder / "array", bench.path("in.ppm"), bench.path("out.ppm"), "0.1", env=env)
        bench.check(done.returncode == 0, f"{way}: array runs: {done.stderr.decode()[-300:]}")
        result = bench.path("out.ppm").read_bytes()[-pixels.size:] if done.returncode == 0 else b""
        bench.check(result == expected["bytes"].tobytes(), f"{way}: array gives what the program gives")
        planes = np.ascontiguousarray(values.transpose(2, 0, 1))
        done = run(folder / "planes", "83", "101", "0.1", env=env, input=planes.tobytes())
        bench.check(done.returncode == 0, f"{way}: planes runs: {done.stderr.decode()[-300:]}")
        bench.check(done.stdout == np.ascontiguousarray(expected["floats"].transpose(2, 0, 1)).tobytes(),
                    f"{way}: planes gives what the program gives")


def main():
    for tool in ("cmake", "pkg-config", "cc", "c++"):
        if not shutil.which(tool):
            skip(f"there is no {tool}")
    bench = Bench(sys.argv[1])
    build = pathlib.Path(bench.program).parent
    tree = install(bench, build)
    look_for_paths(bench, tree, build)
    look_at_symbols(bench, tree)
    look_for_module(bench, tree)
    shown = run(tree / "bin" / "tessera", "info", env={"TESSERA_MODELS": ""}).stdout.decode()
    bench.check(shown.count("drunet-color-small") == 1, "the installed program finds the models beside itself")
    ways, library = build_examples(bench, tree)
    compare(bench, tree, ways, library)
    bench.finish()


main()
