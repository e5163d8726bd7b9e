"""`python -m echod` is `echod`."""

from echod.cli.main import main

if __name__ == "__main__":
    main()
