"""Entry point of `python -m luftpause`."""

from luftpause.cli.main import main

if __name__ == "__main__":
    main()
