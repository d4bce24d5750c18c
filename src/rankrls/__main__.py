"""``python -m rankrls`` is the command ``rankrls``."""

from rankrls.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
