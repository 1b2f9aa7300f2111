"""`python -m gemmspec.cli`: the command line without its installed script."""

from gemmspec.cli import main

main()
