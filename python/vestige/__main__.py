"""`python -m vestige` is the command `vestige`."""

from vestige.cli import main

main()
