"""Launcher of a checkout: ``python cli.py instance.json``. Installed, the command is ``optimize``."""

from optimizer.commands import main

if __name__ == "__main__":
    main()
