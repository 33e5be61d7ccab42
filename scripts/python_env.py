#!/usr/bin/env python3
"""A private Python environment for the tests: scripts/python_env.py NAME PACKAGE==VERSION... (by scripts/python-env)

Makes target/python/NAME with these packages if it is not there yet, and prints the folder of its programs. Several may ask
at once; one makes it and the others wait.
"""
import fcntl
import os
import pathlib
import subprocess
import sys


def main(name, packages):
    root = pathlib.Path(__file__).resolve().parent.parent
    folder = pathlib.Path(os.environ.get("CARGO_TARGET_DIR") or root / "target") / "python"
    if not folder.is_absolute():
        folder = root / folder
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        make(folder / name, packages)
    print(folder / name / "bin")


def make(place, packages):
    # Written last: an environment without it was interrupted and is made again.
    stamp = place / "packages"
    wanted = "\n".join([sys.version, *packages])
    if stamp.exists() and stamp.read_text() == wanted:
        return
    import venv  # Slow to load, and nearly always everything is there already.

    venv.create(place, clear=True, with_pip=True)
    pip = [place / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, *packages], check=True, stdout=sys.stderr)
    stamp.write_text(wanted)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    try:
        main(sys.argv[1], sys.argv[2:])
    except (subprocess.CalledProcessError, ImportError, OSError) as error:
        sys.exit(f"python-env: {error}\nIt needs Python 3.9 with venv (on Debian: apt-get install python3-venv) and PyPI.")
