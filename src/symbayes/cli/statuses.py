"""What a shell is told at the end of a command."""

FAILED, USAGE = 1, 2
# As a shell reports a program that Ctrl-C has ended, and one whose reader has gone.
INTERRUPTED, BROKEN_PIPE = 130, 141
