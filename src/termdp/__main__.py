"""`python -m termdp` is the `termdp` command."""

from termdp.cli import main

main()
