"""test_layout.py PROGRAM LIBRARY COMPILER: the structs of the module have the layout that the C compiler gives the header's."""
import ctypes
import subprocess
import sys

from common import ROOT, start


def main():
    bench, _ = start()
    from tessera._arrays import ELEMENTS
    from tessera._library import HALO_AUTO, HALO_EXACT, SIGMA_AUTO, STRUCTS, TILE_WHOLE
    lines, wanted = [], []
    for name, struct in STRUCTS.items():
        lines.append(f'printf("%zu\\n", sizeof({name}));')
        wanted.append((name, ctypes.sizeof(struct)))
        for field, _ in struct._fields_:
            place = getattr(struct, field)
            lines.append(f'printf("%zu\\n", offsetof({name}, {field}) * 65536 + sizeof((({name} *)0)->{field}));')
            wanted.append((f"{name}.{field}", place.offset * 65536 + place.size))
    short = {"uint": "U", "float": "F"}
    for name, value in ELEMENTS.items():
        letters = name.rstrip("0123456789")
        wanted.append((name, value))
        lines.append(f'printf("%d\\n", TESS_ELEMENT_{short[letters]}{name[len(letters):]});')
    for name, value in (("TESS_HALO_AUTO", HALO_AUTO), ("TESS_HALO_EXACT", HALO_EXACT), ("TESS_TILE_WHOLE", TILE_WHOLE),
                        ("TESS_SIGMA_AUTO", int(SIGMA_AUTO))):
        wanted.append((name, value))
        lines.append(f'printf("%d\\n", (int){name});')
    source = bench.path("layout.c")
    source.write_text("#include <stdio.h>\n#include \"tessera.h\"\nint main(void)\n{\n" + "\n".join(lines) + "\nreturn 0;\n}\n")
    subprocess.run([sys.argv[3], "-std=c11", f"-I{ROOT / 'include'}", "-o", bench.path("layout"), source], check=True)
    printed = subprocess.run([bench.path("layout")], check=True, capture_output=True, text=True).stdout.split()
    wrong = [name for (name, value), said in zip(wanted, printed) if value != int(said)]
    bench.check(len(printed) == len(wanted) and not wrong, f"{len(wanted)} sizes, offsets and constants; wrong: {wrong}")
    bench.finish()


main()
