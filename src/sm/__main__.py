"""`python -m sm` is `sm`."""

from sm.cli import main

if __name__ == "__main__":
    main()
