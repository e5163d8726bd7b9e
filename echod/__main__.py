"""`python -m echod` is `echod`."""

from echod.cli.entry import main

if __name__ == "__main__":
    main()
