"""The `ginio` command."""

import importlib.util
import sys


def main() -> None:
    """Run the command line, or say what it needs."""
    missing = [m for m in ("tyro", "rich") if importlib.util.find_spec(m) is None]
    if missing:
        sys.exit(f"the ginio command needs {' and '.join(missing)}: pip install 'ginio[cli]'")
    from ginio.cli import run  # noqa: PLC0415 - the message above must come first

    sys.exit(run())


if __name__ == "__main__":
    main()
