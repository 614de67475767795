"""Run by `build.py` in the folder of the sources: lets mypyc write C and prints what is to be compiled with what.

    python to_c.py FOLDER MODULE...

One line a C source: `unit`, the library, the source and the compiler's options, with tabs between them.
"""

import sys

from mypyc.build import mypycify


def main() -> None:
    """Do what stands above."""
    folder, *modules = sys.argv[1:]
    # The sources have passed the strict checks already; what was written into them has other manners.
    flags = ["--config-file=", "--no-warn-unused-ignores"]
    extensions = mypycify(
        [*flags, *modules], multi_file=True, target_dir=folder, group_name="luftpause", debug_level="0"
    )
    for extension in extensions:
        wanted = [
            each for each in extension.extra_compile_args if each != "-Werror"
        ]  # new compilers warn of new things
        options = [*wanted, *(f"-I{folder}" for folder in extension.include_dirs)]
        for source in extension.sources:
            print("unit", extension.name, source, *options, sep="\t")


if __name__ == "__main__":
    main()
