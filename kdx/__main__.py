"""`python -m kdx` is `kdx`."""

from kdx.cli.app import main

main()
