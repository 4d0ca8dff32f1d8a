"""`python -m conspectus.cli`: the same as `conspectus`."""

from conspectus.cli import main

main()
