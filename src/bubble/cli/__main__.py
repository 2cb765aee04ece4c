"""`python -m bubble.cli`, the same as `bubble`."""

from bubble.cli import main

if __name__ == "__main__":
    main()
